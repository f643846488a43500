//! The allowed error of an element of a product.

use crate::protocol::Dtype;

#[derive(Debug, Clone, Copy, PartialEq)]
pub(in crate::catalogue) struct Tolerance {
    /// The allowed error per unit of the reference, because the result is rounded once.
    pub(super) of_result: f64,
    /// The allowed error per unit of the sum of the terms' absolute values, because each addition
    /// is rounded.
    pub(super) of_terms: f64,
    /// The error allowed for every sum, however small: half the distance between the smallest
    /// numbers of the result's type, if sums can be that small.
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

    /// Returns a distance from the reference as a share of the allowed error. `sum` is the size of
    /// the reference, and `terms` the sum of the terms' absolute values.
    pub(in crate::catalogue) fn share_of_allowed_error(
        self,
        distance: f64,
        sum: f64,
        terms: f64,
    ) -> f64 {
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
    use half::f16;

    use super::*;

    #[test]
    fn tiny_sum_may_be_rounded_once() {
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
