//! Sine and cosine without a branch, so that the compiler works on as many numbers at once as the
//! processor has room for; those of the C library are called for one number after the other, which
//! takes several times as long.
//!
//! The number less a multiple of a quarter turn is within an eighth of a turn around 0, where a few
//! terms of Taylor's series are as exact as the type. A quarter turn is taken off in parts of few
//! bits, whose multiples are exact.

use std::f32::consts::LOG2_E;

/// Sine and cosine of a number of a type, and what that needs.
macro_rules! sin_cos {
    ($name:ident, $float:ident, $word:ident, $most:expr, $shift:expr, $parts:expr, $terms:expr) => {
        /// Cosine and sine; no number where the number is so large that too little is left of it.
        #[inline(always)]
        // A call would keep the loop around it from working on several.
        #[allow(clippy::inline_always)]
        pub(crate) fn $name(x: $float) -> ($float, $float) {
            /// Added to a small number, it leaves no place for a fraction, and the lowest bits
            /// count whole ones.
            const SHIFT: $float = $shift;
            /// Larger numbers than this have lost too much.
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
            // Each quarter turn makes one of the other, and each half changes the sign.
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
    // 11 bits, 11 bits, and the rest of a quarter turn.
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
    // 33 bits, 33 bits, and the rest.
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

/// Added to a small number, it leaves no place for a fraction, and the lowest bits count whole
/// ones.
const SHIFT: f32 = 12_582_912.0; // 1.5 * 2^23
/// The logarithm of 2 in two parts: multiples of the first are exact.
const LN_2: [f32; 2] = [f32::from_bits(0x3f31_7200), f32::from_bits(0x35bf_be8e)];
/// The factor from each term of the series to the next, the last one first.
const STEPS: [f32; 7] = [
    1.0 / 7.0,
    1.0 / 6.0,
    1.0 / 5.0,
    1.0 / 4.0,
    1.0 / 3.0,
    1.0 / 2.0,
    1.0,
];
/// The result is 0 below these numbers and infinite above them.
const RANGE: (f32, f32) = (-104.0, 89.0);
const BIAS: i32 = f32::MAX_EXP - 1;
const FRACTION: u32 = f32::MANTISSA_DIGITS - 1;

/// e to the power of a number, to one or two units of the last place.
#[inline(always)]
#[allow(clippy::inline_always)] // A call would keep the loop around it from working on several.
pub(crate) fn exp_f32(x: f32) -> f32 {
    let x = x.clamp(RANGE.0, RANGE.1);
    let shifted = x * LOG2_E + SHIFT;
    let multiple = shifted - SHIFT;
    let rest = LN_2.iter().fold(x, |rest, part| rest - multiple * part);
    let sum = STEPS
        .iter()
        .fold(1.0, |sum, step| sum * (rest * step) + 1.0);
    // Half of the exponent at a time: the whole can be more than a number has room for.
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

    /// In units of the precision at 1, over a range of numbers.
    fn largest_error(most: f64, epsilon: f64, of: impl Fn(f64) -> (f64, (f64, f64))) -> f64 {
        let numbers = (0..=400_000).map(|at| (f64::from(at) / 200_000.0 - 1.0) * most);
        let errors = numbers.map(|number| {
            let (x, (cosine, sine)) = of(number);
            (cosine - x.cos()).abs().max((sine - x.sin()).abs()) / epsilon
        });
        errors.fold(0.0, f64::max)
    }

    fn narrow(number: f64) -> (f64, (f64, f64)) {
        let x = number as f32;
        let (cosine, sine) = cos_sin_f32(x);
        (f64::from(x), (f64::from(cosine), f64::from(sine)))
    }

    #[test]
    fn they_are_exact_to_a_unit_of_the_type() {
        for most in [1e-3, 1.0, 10.0, 1e3] {
            let error = largest_error(most, f64::from(f32::EPSILON), narrow);
            assert!(error <= 1.0, "{most}: {error}");
        }
        for most in [1e-3, 1.0, 10.0, 1e3, 1e6] {
            let error = largest_error(most, f64::EPSILON, |x| (x, cos_sin_f64(x)));
            assert!(error <= 1.0, "{most}: {error}");
        }
    }

    #[test]
    fn what_is_too_large_or_no_number_gives_none() {
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
    fn what_is_no_usual_number_has_its_result() {
        let results = [0.0, -0.0, f32::NEG_INFINITY, -200.0, f32::INFINITY, 200.0]
            .map(|x| exp_f32(x).to_bits());
        assert_eq!(
            results,
            [1.0, 1.0, 0.0, 0.0, f32::INFINITY, f32::INFINITY].map(f32::to_bits)
        );
        assert!(exp_f32(f32::NAN).is_nan());
    }
}
