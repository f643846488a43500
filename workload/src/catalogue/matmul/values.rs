//! The elements of matrices on the host, and the allowed error of an element of a product. Elements
//! are generated and read in the same way as by `matmul_check.cu` on a GPU.

use half::{bf16, f16};

use crate::{
    check::DoubleDouble,
    numbers::{self, Real},
    protocol::{Dtype, Verification},
};

pub(super) fn result_element_bytes(dtype: Dtype) -> u64 {
    match dtype {
        Dtype::Fp64 => 8,
        Dtype::Fp32 | Dtype::Tf32 | Dtype::Int8 => 4,
        Dtype::Fp16 | Dtype::Bf16 | Dtype::Fp8 | Dtype::Bytes => 2,
    }
}

pub(super) fn random_value(dtype: Dtype, seed: u64, index: u64) -> f64 {
    let single = f32::random_number(seed, index);
    match dtype {
        Dtype::Fp64 => f64::random_number(seed, index),
        Dtype::Fp32 => f64::from(single),
        Dtype::Tf32 => f64::from(round_to_tf32(single)),
        Dtype::Fp16 => f16::from_f32(single).to_f64(),
        Dtype::Bf16 => bf16::from_f32(single).to_f64(),
        Dtype::Fp8 => round_to_fp8(single),
        Dtype::Int8 | Dtype::Bytes => f64::from((numbers::generate_bits(seed, index) >> 56) as i8),
    }
}

pub(super) fn result_to_f64(dtype: Dtype, bytes: [u8; 8]) -> f64 {
    let [a, b, c, d, ..] = bytes;
    match dtype {
        Dtype::Fp64 => f64::from_le_bytes(bytes),
        Dtype::Fp32 | Dtype::Tf32 => f64::from(f32::from_le_bytes([a, b, c, d])),
        Dtype::Fp16 => f16::from_le_bytes([a, b]).to_f64(),
        Dtype::Bf16 | Dtype::Fp8 | Dtype::Bytes => bf16::from_le_bytes([a, b]).to_f64(),
        Dtype::Int8 => f64::from(i32::from_le_bytes([a, b, c, d])),
    }
}

/// Returns the nearest number with 10 fraction bits.
pub(super) fn round_to_tf32(value: f32) -> f32 {
    const DROPPED: u32 = 13;
    let word = value.to_bits();
    let nearest = word + ((1 << (DROPPED - 1)) - 1) + (word >> DROPPED & 1);
    f32::from_bits(nearest & !((1 << DROPPED) - 1))
}

/// Returns the nearest e4m3 number. Such numbers have 3 fraction bits and, below 1/64, a spacing of
/// 1/512.
pub(super) fn round_to_fp8(value: f32) -> f64 {
    const FRACTION: i32 = 3;
    const SMALLEST_EXPONENT: i32 = -6;
    let value = f64::from(value);
    let exponent = if value == 0.0 {
        SMALLEST_EXPONENT
    } else {
        value.abs().log2().floor() as i32
    };
    let step = f64::from(exponent.max(SMALLEST_EXPONENT) - FRACTION).exp2();
    (value / step).round_ties_even() * step
}

/// The allowed error of an element of a product.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(in crate::catalogue) struct Tolerance {
    /// The error allowed for rounding the result, as a multiple of the reference.
    pub(super) of_result: f64,
    /// The error allowed for rounding all additions, as a multiple of the sum of the terms'
    /// absolute values.
    pub(super) of_terms: f64,
    /// The error that is allowed even for the smallest sums: half the distance between the smallest
    /// numbers of the result's type. It is 0 if no sum is that small.
    pub(super) least: f64,
}

impl Tolerance {
    /// Returns the tolerance for products with `n` terms per element.
    ///
    /// The rounding errors in a sum partly cancel each other, so the total error grows with the
    /// square root of the number of steps. Partial sums of random terms are smaller than the sum of
    /// absolute values by the same square root. Tensor cores truncate instead of rounding, which
    /// stays within the same bound. Hopper's tensor cores keep 14 bits of a sum of 8-bit
    /// floating-point numbers: an H200 reached 1.1 times a bound that was half as large.
    pub(in crate::catalogue) fn new(dtype: Dtype, n: u64) -> Self {
        let steps = (n as f64).sqrt() + 4.0;
        let (result_bits, sum_bits) = match dtype {
            Dtype::Int8 | Dtype::Bytes => {
                return Self {
                    of_result: 0.0,
                    of_terms: 0.0,
                    least: 0.0,
                };
            }
            Dtype::Fp64 => (53, 53),
            Dtype::Fp32 | Dtype::Tf32 => (24, 24),
            Dtype::Fp16 => (11, 24),
            Dtype::Bf16 => (8, 24),
            Dtype::Fp8 => (8, 17),
        };
        let least = if dtype == Dtype::Fp16 {
            0.5_f64.powi(25)
        } else {
            0.0
        };
        Self {
            of_result: 0.5_f64.powi(result_bits),
            of_terms: 0.5_f64.powi(sum_bits) * steps,
            least,
        }
    }

    /// Compares an element with the reference, `sum`. `terms` is the sum of the terms' absolute
    /// values.
    pub(in crate::catalogue) fn check_element(
        self,
        index: u64,
        got: f64,
        sum: DoubleDouble,
        terms: f64,
    ) -> Verification {
        let error = self.share_of_allowed_error(sum.distance_to(got), sum.abs(), terms);
        Verification::from_element_error(index, error, 1.0)
    }

    /// Returns an element's error, `distance`, as a share of the allowed error. `sum` is the
    /// absolute value of the reference, and `terms` is the sum of the terms' absolute values.
    fn share_of_allowed_error(self, distance: f64, sum: f64, terms: f64) -> f64 {
        let allowed = self.of_result * sum + self.of_terms * terms + self.least;
        if distance == 0.0 {
            0.0
        } else {
            distance / allowed
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_rounded_with_ties_to_even() {
        let is = |got: f64, expected: f64| {
            assert_eq!(got.to_bits(), expected.to_bits(), "{got} is {expected}");
        };
        // Some values are exactly halfway between two fp8 numbers, such as 1.0625 between 1 and
        // 1.125. Others are below 1/64, where the distance between two fp8 numbers is constant.
        for (of, nearest) in [
            (0.0, 0.0),
            (-1.0, -1.0),
            (0.5, 0.5),
            (1.0625, 1.0),
            (1.1875, 1.25),
            (-1.07, -1.125),
            (0.001, 1.0 / 512.0),
            (0.000_9, 0.0),
        ] {
            is(round_to_fp8(of), nearest);
        }
        is(f64::from(round_to_tf32(1.0 + 1.0 / 2048.0)), 1.0);
        is(
            f64::from(round_to_tf32(1.0 + 3.0 / 2048.0)),
            1.0 + 4.0 / 2048.0,
        );
        assert_eq!(round_to_tf32(-0.3).to_bits() & 0x1fff, 0);
    }

    #[test]
    fn matrix_result_is_read_from_little_endian_bytes() {
        let is = |dtype, bytes, expected: f64| {
            assert_eq!(
                result_to_f64(dtype, bytes).to_bits(),
                expected.to_bits(),
                "{dtype}"
            );
        };
        is(Dtype::Bf16, [0xc0, 0x3f, 9, 9, 9, 9, 9, 9], 1.5);
        is(Dtype::Fp16, [0x00, 0x3e, 9, 9, 9, 9, 9, 9], 1.5);
        is(Dtype::Int8, [0xff, 0xff, 0xff, 0xff, 9, 9, 9, 9], -1.0);
        assert!(result_to_f64(Dtype::Fp32, [0xff; 8]).is_nan());
    }

    #[test]
    fn tolerance_of_tiny_sum_allows_one_rounding() {
        let bound = Tolerance::new(Dtype::Fp16, 2);
        // This sum lies between two neighboring numbers of the type, which are 2^-24 apart.
        let sum = 3.5 * 0.5_f64.powi(24);
        let distance = (f16::from_f64(sum).to_f64() - sum).abs();
        assert!(bound.share_of_allowed_error(distance, sum, sum) <= 1.0);
        assert!(
            bound.share_of_allowed_error(3.0 * distance, sum, sum) > 1.0,
            "the neighbor beyond is wrong"
        );
    }
}
