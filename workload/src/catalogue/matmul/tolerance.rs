//! How far an element of a product may be from its reference.

use crate::protocol::Dtype;

#[derive(Debug, Clone, Copy, PartialEq)]
pub(in crate::catalogue) struct Tolerance {
    /// For each unit of the reference: the result is rounded once.
    pub(super) of_result: f64,
    /// For each unit of the sum of the terms' sizes: what adding them up loses.
    pub(super) of_terms: f64,
    /// Whatever the sum is: half the distance of the smallest numbers of the result's type, where
    /// sums come near those.
    pub(super) least: f64,
}

impl Tolerance {
    /// Of products of `n` terms.
    ///
    /// Errors of a sum that is rounded at each step grow with the root of the steps where they
    /// cancel each other, and partial sums of random terms are by that root smaller than all their
    /// sizes together. Tensor cores cut off instead of rounding, which stays within the same bound.
    /// Hopper's keep 14 bits of a sum of 8-bit floating point numbers, of which an H200 came up to
    /// 1.1 of a bound half as large.
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

    /// How much of what is allowed a distance from the reference takes, for a sum of this size with
    /// terms that are together of that size.
    pub(in crate::catalogue) fn error(self, distance: f64, sum: f64, terms: f64) -> f64 {
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
    fn a_sum_among_the_smallest_numbers_of_its_type_is_right_where_it_is_rounded_once() {
        let bound = Tolerance::new(Dtype::Fp16, 2);
        // Between two neighbors, 2^-24 apart.
        let sum = 3.5 * 0.5_f64.powi(24);
        let distance = (f16::from_f64(sum).to_f64() - sum).abs();
        assert!(bound.error(distance, sum, sum) <= 1.0);
        assert!(
            bound.error(3.0 * distance, sum, sum) > 1.0,
            "the neighbor beyond is wrong"
        );
    }
}
