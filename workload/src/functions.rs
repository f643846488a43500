//! Sine, cosine and exponential functions without branches, which the compiler can vectorize.
//! Calling the C library's functions for one number after another takes several times as long.
//!
//! Sine and cosine subtract a multiple of a quarter turn. The remainder is at most an eighth of a
//! turn, where a few terms of the Taylor series are as exact as the type. The quarter turn is
//! subtracted in several parts with few bits each, so that multiples of the parts are exact.

use std::f32::consts::LOG2_E;

/// Defines a function that computes sine and cosine in a floating-point type.
macro_rules! sin_cos {
    ($name:ident, $float:ident, $word:ident, $most:expr, $shift:expr, $parts:expr, $terms:expr) => {
        /// Returns the cosine and the sine of `x`, or NaN if `x` is so large that the remainder
        /// would be imprecise.
        #[inline(always)]
        // A call would prevent the vectorization of the surrounding loop.
        #[allow(clippy::inline_always)]
        pub(crate) fn $name(x: $float) -> ($float, $float) {
            /// Adding this constant to a small number rounds it to an integer, which is then in the
            /// lowest bits of the sum.
            const SHIFT: $float = $shift;
            /// The largest number whose remainder is precise.
            const MOST: $float = $most;
            const PARTS: [$float; 3] = $parts;
            let shifted = x * std::$float::consts::FRAC_2_PI + SHIFT;
            let quarters = shifted - SHIFT;
            let rest = PARTS.iter().fold(x, |rest, part| rest - quarters * part);
            let square = rest * rest;
            let (mut sine, mut cosine) = (0.0, 0.0);
            let mut term = $terms;
            while term > 0 {
                let (odd, even) = (
                    FACTORIALS[2 * term + 1] as $float,
                    FACTORIALS[2 * term] as $float,
                );
                sine = (sine + 1.0 / odd) * -square;
                cosine = (cosine + 1.0 / even) * -square;
                term -= 1;
            }
            let (sine, cosine) = (rest + rest * sine, 1.0 + cosine);
            // Each quarter turn swaps sine and cosine. Each half turn changes the sign of both.
            let turn = shifted.to_bits();
            let is_odd = (turn & 1).wrapping_neg();
            let pick = |even: $float, odd: $float, sign: $word| {
                let bits = even.to_bits() & !is_odd | odd.to_bits() & is_odd;
                $float::from_bits(bits ^ ((sign >> 1 & 1) << ($word::BITS - 1)))
            };
            let nothing = if x.abs() <= MOST { 0.0 } else { $float::NAN };
            (
                pick(cosine, sine, turn.wrapping_add(1)) + nothing,
                pick(sine, cosine, turn) + nothing,
            )
        }
    };
}

sin_cos!(
    cos_sin_f32,
    f32,
    u32,
    1e3,
    12_582_912.0, // 1.5 * 2^23
    // A quarter turn in three parts: 11 bits, 11 bits, and the remaining bits.
    [
        f32::from_bits(0x3fc9_0000),
        f32::from_bits(0x39fd_a000),
        f32::from_bits(0x33a2_2169)
    ],
    5
);
sin_cos!(
    cos_sin_f64,
    f64,
    u64,
    1e6,
    6_755_399_441_055_744.0, // 1.5 * 2^52
    // A quarter turn in three parts: 33 bits, 33 bits, and the remaining bits.
    [
        f64::from_bits(0x3ff9_21fb_5440_0000),
        f64::from_bits(0x3dd0_b461_1a60_0000),
        f64::from_bits(0x3ba3_198a_2e03_7073)
    ],
    9
);

const FACTORIALS: [f64; 20] = {
    let mut factorials = [1.0; 20];
    let mut at = 1;
    while at < factorials.len() {
        factorials[at] = factorials[at - 1] * at as f64;
        at += 1;
    }
    factorials
};

/// Adding this constant to a small number rounds it to an integer, which is then in the lowest bits
/// of the sum.
const SHIFT: f32 = 12_582_912.0; // 1.5 * 2^23
/// The logarithm of 2 in two parts. Multiples of the first part are exact.
const LN_2: [f32; 2] = [f32::from_bits(0x3f31_7200), f32::from_bits(0x35bf_be8e)];
/// The factors between successive terms of the series, beginning with the last term.
const TERM_FACTORS: [f32; 7] = [
    1.0 / 7.0,
    1.0 / 6.0,
    1.0 / 5.0,
    1.0 / 4.0,
    1.0 / 3.0,
    1.0 / 2.0,
    1.0,
];
/// The limits of inputs. The result is 0 below this range, and infinite above it.
const INPUT_RANGE: (f32, f32) = (-104.0, 89.0);
const BIAS: i32 = f32::MAX_EXP - 1;
const FRACTION: u32 = f32::MANTISSA_DIGITS - 1;

/// Returns e to the power of `x`, with an error of at most two units in the last place.
#[inline(always)]
#[allow(clippy::inline_always)] // A call would prevent the vectorization of the surrounding loop.
pub(crate) fn exp_f32(x: f32) -> f32 {
    let x = x.clamp(INPUT_RANGE.0, INPUT_RANGE.1);
    let shifted = x * LOG2_E + SHIFT;
    let multiple = shifted - SHIFT;
    let rest = LN_2.iter().fold(x, |rest, part| rest - multiple * part);
    let sum = TERM_FACTORS
        .iter()
        .fold(1.0, |sum, step| sum * (rest * step) + 1.0);
    // The exponent is applied in two halves, because 2 to the full exponent may exceed the range of
    // the type.
    let exponent = shifted
        .to_bits()
        .wrapping_sub(SHIFT.to_bits())
        .cast_signed();
    let power =
        |exponent: i32| f32::from_bits(exponent.wrapping_add(BIAS).cast_unsigned() << FRACTION);
    let half = exponent >> 1;
    sum * power(half) * power(exponent - half)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the largest error of cosine and sine from `-most` to `most`, in units of `epsilon`.
    fn largest_error(most: f64, epsilon: f64, of: impl Fn(f64) -> (f64, (f64, f64))) -> f64 {
        let numbers = (0..=400_000).map(|at| (f64::from(at) / 200_000.0 - 1.0) * most);
        let errors = numbers.map(|number| {
            let (x, (cosine, sine)) = of(number);
            (cosine - x.cos()).abs().max((sine - x.sin()).abs()) / epsilon
        });
        errors.fold(0.0, f64::max)
    }

    fn cos_sin_narrow(number: f64) -> (f64, (f64, f64)) {
        let x = number as f32;
        let (cosine, sine) = cos_sin_f32(x);
        (f64::from(x), (f64::from(cosine), f64::from(sine)))
    }

    #[test]
    fn error_is_within_one_unit_of_type() {
        for most in [1e-3, 1.0, 10.0, 1e3] {
            let error = largest_error(most, f64::from(f32::EPSILON), cos_sin_narrow);
            assert!(error <= 1.0, "{most}: {error}");
        }
        for most in [1e-3, 1.0, 10.0, 1e3, 1e6] {
            let error = largest_error(most, f64::EPSILON, |x| (x, cos_sin_f64(x)));
            assert!(error <= 1.0, "{most}: {error}");
        }
    }

    #[test]
    fn too_large_or_nan_input_gives_nan() {
        for x in [1.1e6, f64::NAN, f64::INFINITY, f64::MIN] {
            assert!(
                cos_sin_f64(x).0.is_nan() && cos_sin_f64(x).1.is_nan(),
                "{x}"
            );
            assert!(cos_sin_f32(x as f32).0.is_nan(), "{x}");
        }
    }
}

#[cfg(test)]
mod exp_tests {
    use super::*;

    #[test]
    fn error_is_within_two_units_of_last_place() {
        for at in -1_040_000..890_000 {
            let x = at as f32 * 1e-4;
            let expected = f64::from(x).exp();
            let unit = (expected as f32).abs().max(f32::MIN_POSITIVE) * f32::EPSILON;
            let error = (f64::from(exp_f32(x)) - expected).abs() / f64::from(unit);
            assert!(
                error <= 2.0 || expected > f64::from(f32::MAX),
                "{x}: {} for {expected}",
                exp_f32(x)
            );
        }
    }

    #[test]
    fn special_inputs_have_exact_results() {
        let results = [0.0, -0.0, f32::NEG_INFINITY, -200.0, f32::INFINITY, 200.0]
            .map(|x| exp_f32(x).to_bits());
        assert_eq!(
            results,
            [1.0, 1.0, 0.0, 0.0, f32::INFINITY, f32::INFINITY].map(f32::to_bits)
        );
        assert!(exp_f32(f32::NAN).is_nan());
    }
}
