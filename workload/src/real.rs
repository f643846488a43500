//! The number types that workloads use for computing.

use std::ops::{Add, Mul};

use crate::{
    check::DoubleDouble,
    cuda::{Argument, Plain},
    functions::{cos_sin_f32, cos_sin_f64},
    protocol::Dtype,
    random,
};

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
    fn to_word(self) -> u64;
    /// Converts little-endian bytes to a number. Returns poison if the number of bytes is wrong.
    fn from_le_bytes(bytes: &[u8]) -> Self;
    fn to_argument(self) -> Argument<'static>;
    fn cos_sin(self) -> (Self, Self);

    fn random_number(seed: u64, index: u64) -> Self {
        Self::from_random_bits(random::generate_bits(seed, index))
    }

    fn random_array(elements: u64, seed: u64) -> Vec<Self> {
        random::generate_array(elements, |index| Self::random_number(seed, index))
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
    fn to_word(self) -> u64 {
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
    fn to_word(self) -> u64 {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn check_random_range<T: Real>() {
        let numbers: Vec<_> = (0..1000)
            .map(|index| T::random_number(random::SEED_A, index).to_f64())
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
}
