//! Numbers on the CPU: the floating-point types of workloads, their random inputs, and fast
//! functions.

use std::{
    f32::consts::LOG2_E,
    ops::{Add, Mul},
};

use crate::{
    check::DoubleDouble,
    cuda::{Argument, Plain},
    parallel::{self, CHUNK_ELEMENTS},
    protocol::Dtype,
};

/// A floating-point type that workloads use for computing.
pub(crate) trait Real: Plain + Default + Add<Output = Self> + Mul<Output = Self> {
    const DTYPE: Dtype;
    /// The distance from 1 to the next larger number.
    const EPSILON: f64;
    /// A value that never occurs in a result.
    const POISON: Self;

    /// Converts random bits to a number between -1 and 1.
    fn from_random_bits(bits: u64) -> Self;
    fn from_f64(value: f64) -> Self;
    fn to_f64(self) -> f64;
    /// Returns the bits as an unsigned number of the same width.
    fn to_bits_u64(self) -> u64;
    /// Converts little-endian bytes to a number. If the number of bytes is wrong, returns `POISON`,
    /// which fails every check.
    fn from_le_bytes(bytes: &[u8]) -> Self;
    fn to_argument(self) -> Argument<'static>;
    fn cos_sin(self) -> (Self, Self);

    fn random_number(seed: u64, index: u64) -> Self {
        Self::from_random_bits(generate_bits(seed, index))
    }

    fn random_array(elements: u64, seed: u64) -> Vec<Self> {
        generate_array(elements, |index| Self::random_number(seed, index))
    }

    fn random_exact(seed: u64, index: u64) -> DoubleDouble {
        DoubleDouble::from_f64(Self::random_number(seed, index).to_f64())
    }
}

impl Real for f32 {
    const DTYPE: Dtype = Dtype::Fp32;
    const EPSILON: f64 = f32::EPSILON as f64;
    const POISON: Self = f32::NAN;

    fn from_random_bits(bits: u64) -> Self {
        const HALF: i64 = 1 << 23;
        ((bits >> 40).cast_signed() - HALF) as f32 / HALF as f32
    }
    fn from_f64(value: f64) -> Self {
        value as f32
    }
    fn to_f64(self) -> f64 {
        f64::from(self)
    }
    fn to_bits_u64(self) -> u64 {
        u64::from(self.to_bits())
    }
    fn from_le_bytes(bytes: &[u8]) -> Self {
        bytes.try_into().map_or(Self::POISON, Self::from_le_bytes)
    }
    fn to_argument(self) -> Argument<'static> {
        Argument::F32(self)
    }
    fn cos_sin(self) -> (Self, Self) {
        cos_sin_f32(self)
    }
}

impl Real for f64 {
    const DTYPE: Dtype = Dtype::Fp64;
    const EPSILON: f64 = f64::EPSILON;
    const POISON: Self = f64::NAN;

    fn from_random_bits(bits: u64) -> Self {
        const HALF: i64 = 1 << 52;
        ((bits >> 11).cast_signed() - HALF) as f64 / HALF as f64
    }
    fn from_f64(value: f64) -> Self {
        value
    }
    fn to_f64(self) -> f64 {
        self
    }
    fn to_bits_u64(self) -> u64 {
        self.to_bits()
    }
    fn from_le_bytes(bytes: &[u8]) -> Self {
        bytes.try_into().map_or(Self::POISON, Self::from_le_bytes)
    }
    fn to_argument(self) -> Argument<'static> {
        Argument::F64(self)
    }
    fn cos_sin(self) -> (Self, Self) {
        cos_sin_f64(self)
    }
}

// Random data that can be reproduced, because each element depends only on the seed and its index.
// The kernels in `random.cu` generate the same data on a GPU.

/// The seed of a workload's first input. `SEED_B` is that of the second input, which may be any
/// different number.
pub(crate) const SEED_A: u64 = 0x6770_756d_6f6e_0001;
pub(crate) const SEED_B: u64 = 0x6770_756d_6f6e_0002;
/// The first seed as shown in results. It is a string, because not every JSON parser represents
/// 64-bit numbers exactly.
pub(crate) const SEED_TEXT: &str = "0x6770756d6f6e0001";

pub(crate) fn generate_bits(seed: u64, index: u64) -> u64 {
    let mut word = seed.wrapping_add((index + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}

/// Sets each element to a value that is computed from its index. All threads are used.
pub(crate) fn fill_elements<T: Send>(out: &mut [T], element: impl Fn(u64) -> T + Sync) {
    parallel::for_each(
        (0..)
            .step_by(CHUNK_ELEMENTS)
            .zip(out.chunks_mut(CHUNK_ELEMENTS)),
        &|(first, out)| {
            out.iter_mut()
                .zip(first..)
                .for_each(|(out, index)| *out = element(index));
        },
    );
}

/// Returns an array whose elements are computed from their indices. All threads are used.
pub(crate) fn generate_array<T: Default + Clone + Send>(
    elements: u64,
    element: impl Fn(u64) -> T + Sync,
) -> Vec<T> {
    let mut array = vec![T::default(); elements as usize];
    fill_elements(&mut array, element);
    array
}

// Sine, cosine and exponential functions without branches, which the compiler can vectorize.
// Calling the C library's functions for one number after another takes several times as long.
//
// Sine and cosine subtract a multiple of a quarter turn. The remainder is at most an eighth of a
// turn, where a few terms of the Taylor series are as exact as the type. The quarter turn is
// subtracted in several parts with few bits each, so that multiples of the parts are exact.

/// Defines a function that computes sine and cosine in a floating-point type.
macro_rules! sin_cos {
    ($name:ident, $float:ident, $word:ident, $most:expr, $shift:expr, $parts:expr, $terms:expr) => {
        /// Returns the cosine and the sine of `x`, or NaN if `x` is so large that the remainder
        /// would be imprecise.
        #[inline(always)]
        // A call would prevent the vectorization of the surrounding loop.
        #[allow(clippy::inline_always)]
        pub(crate) fn $name(x: $float) -> ($float, $float) {
            /// Adding this constant to a small number rounds the number to an integer. The lowest
            /// bits of the sum are this integer.
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

/// Adding this constant to a small number rounds the number to an integer. The lowest bits of the
/// sum are this integer.
const SHIFT: f32 = 12_582_912.0; // 1.5 * 2^23
/// The logarithm of 2 in two parts. Multiples of the first part are exact.
const LN_2: [f32; 2] = [f32::from_bits(0x3f31_7200), f32::from_bits(0x35bf_be8e)];
/// The factors by which each term of the series is multiplied to get the next term, beginning with
/// the factor for the last term.
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
    // The result is multiplied by two powers of 2, each with half of the exponent. A single power
    // of 2 with the whole exponent might be outside of the type's range.
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
mod sin_cos_tests {
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

    /// Returns the number rounded to `f32`, with its cosine and sine.
    fn evaluate_cos_sin_in_f32(number: f64) -> (f64, (f64, f64)) {
        let x = number as f32;
        let (cosine, sine) = cos_sin_f32(x);
        (f64::from(x), (f64::from(cosine), f64::from(sine)))
    }

    #[test]
    fn error_is_within_one_unit_of_type() {
        for most in [1e-3, 1.0, 10.0, 1e3] {
            let error = largest_error(most, f64::from(f32::EPSILON), evaluate_cos_sin_in_f32);
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

#[cfg(test)]
mod random_tests {
    use super::*;

    fn check_random_range<T: Real>() {
        let numbers: Vec<_> = (0..1000)
            .map(|index| T::random_number(super::SEED_A, index).to_f64())
            .collect();
        assert!(numbers.iter().all(|number| (-1.0..1.0).contains(number)));
        let mean = numbers.iter().sum::<f64>() / 1000.0;
        assert!(
            mean.abs() < 0.1 && numbers.iter().any(|number| number.abs() > 0.9),
            "{mean}"
        );
        assert_eq!(
            (
                T::from_random_bits(0).to_f64(),
                T::from_random_bits(1 << 63).to_f64()
            ),
            (-1.0, 0.0)
        );
    }

    #[test]
    fn random_numbers_are_on_both_sides_of_zero() {
        check_random_range::<f32>();
        check_random_range::<f64>();
    }

    #[test]
    fn seed_text_matches_seed() {
        assert_eq!(
            (format!("{SEED_A:#x}").as_str(), SEED_B),
            (SEED_TEXT, SEED_A + 1)
        );
    }

    #[test]
    fn random_words_differ_and_are_balanced() {
        let words: Vec<_> = (0..1000)
            .map(|index| generate_bits(SEED_A, index))
            .collect();
        let mut unique = words.clone();
        unique.sort_unstable();
        unique.dedup();
        assert_eq!(unique.len(), 1000);
        let ones: u32 = words.iter().map(|word| word.count_ones()).sum();
        assert!((31_000..33_000).contains(&ones), "{ones}");
        assert_ne!(generate_bits(SEED_A, 7), generate_bits(SEED_B, 7));
    }

    #[test]
    fn array_is_filled_across_chunk_borders() {
        let mut out = vec![0; CHUNK_ELEMENTS * 2 + 3];
        fill_elements(&mut out, |index| index + 1);
        assert!(out.iter().zip(1..).all(|(out, expected)| *out == expected));
    }
}
