//! Comparison of results with reference values, element by element, and the precise numbers that
//! reference values are computed with.

use std::ops::{Add, Mul};

use crate::{
    numbers::{self, Real},
    parallel::{self, CHUNK_ELEMENTS},
    protocol::Verification,
};

#[derive(Debug, Clone, Copy)]
pub(crate) struct Expected {
    pub(crate) value: DoubleDouble,
    /// The size of the inputs. Errors are relative to this size.
    pub(crate) scale: f64,
}

impl Expected {
    pub(crate) fn new(value: f64, scale: f64) -> Self {
        Self {
            value: DoubleDouble::from_f64(value),
            scale,
        }
    }

    /// Returns the expected value of a sum of products. `products` must be exact.
    pub(crate) fn from_products(products: impl Iterator<Item = f64>) -> Self {
        let (sum, scale) = products.fold((0.0, 0.0), |(sum, scale), product| {
            (sum + product, scale + product.abs())
        });
        Self::new(sum, scale)
    }
}

/// Compares elements with their expected values. `first` is the index of the first element of
/// `got`.
pub(crate) fn compare_elements<T: Real>(
    got: &[T],
    first: u64,
    tolerance: f64,
    expected: impl Fn(u64) -> Expected + Sync,
) -> Verification {
    check_each_element(got, first, |got, index| {
        let Expected { value, scale } = expected(index);
        let distance = value.distance_to(got.to_f64());
        // The scale can be 0, so an exact result must not be divided by it.
        let error = if distance == 0.0 {
            0.0
        } else {
            distance / (T::EPSILON * scale)
        };
        Verification::from_element_error(index, error, tolerance)
    })
}

/// Compares words, which must be equal to the expected words.
pub(crate) fn compare_words(
    got: &[u64],
    first: u64,
    expected: impl Fn(u64) -> u64 + Sync,
) -> Verification {
    check_each_element(got, first, |got, index| {
        Verification::from_element_error(
            index,
            if *got == expected(index) {
                0.0
            } else {
                f64::INFINITY
            },
            0.0,
        )
    })
}

/// Checks each element with its index, and combines the results.
fn check_each_element<T: Sync>(
    got: &[T],
    first: u64,
    check: impl Fn(&T, u64) -> Verification + Sync,
) -> Verification {
    let found = parallel::map(
        (first..)
            .step_by(CHUNK_ELEMENTS)
            .zip(got.chunks(CHUNK_ELEMENTS)),
        &|(first, got)| {
            got.iter()
                .zip(first..)
                .map(|(got, index)| check(got, index))
                .collect()
        },
    );
    found.into_iter().collect()
}

/// Returns a function that compares words with the random words of this seed.
pub(crate) fn make_random_check(seed: u64) -> impl Fn(&[u64], u64) -> Verification + Copy {
    move |got, first| compare_words(got, first, |index| numbers::generate_bits(seed, index))
}

/// A floating-point number with about 106 bits of precision.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct DoubleDouble {
    high: f64,
    low: f64,
}

impl DoubleDouble {
    pub(crate) fn from_f64(number: f64) -> Self {
        Self {
            high: number,
            low: 0.0,
        }
    }

    pub(crate) fn distance_to(self, number: f64) -> f64 {
        ((number - self.high) - self.low).abs()
    }

    pub(crate) fn abs(self) -> f64 {
        self.high.abs()
    }
}

impl Add for DoubleDouble {
    type Output = Self;

    /// Adds two numbers with Knuth's algorithm. It finds the rounding error by subtracting the
    /// operands from the sum again.
    fn add(self, other: Self) -> Self {
        let high = self.high + other.high;
        let from_other = high - self.high;
        let lost = (self.high - (high - from_other)) + (other.high - from_other);
        Self {
            high,
            low: lost + self.low + other.low,
        }
    }
}

impl Mul for DoubleDouble {
    type Output = Self;

    /// Multiplies. The rounding error is computed with a fused multiply-add.
    fn mul(self, other: Self) -> Self {
        let high = self.high * other.high;
        let lost = self.high.mul_add(other.high, -high);
        Self {
            high,
            low: lost + (self.high * other.low + self.low * other.high),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expect_one(_: u64) -> Expected {
        Expected {
            value: DoubleDouble::from_f64(1.0),
            scale: 1.0,
        }
    }

    #[test]
    fn correct_results_pass_and_error_is_reported() {
        let got = [1.0_f32, 1.0 + f32::EPSILON, 1.0];
        let found = compare_elements(&got, 0, 2.0, expect_one);
        assert!(
            found.ok && (found.largest_error - 1.0).abs() < 1e-9,
            "{found:?}"
        );
        assert_eq!((found.checked, found.wrong), (3, 0));
    }

    #[test]
    fn first_wrong_element_is_reported() {
        let mut got = vec![1.0_f64; 100_000];
        got[70_001] = 1.0 + 3.0 * f64::EPSILON;
        got[90_000] = -1.0;
        let found = compare_elements(&got, 1000, 2.0, expect_one);
        assert!(!found.ok, "{found:?}");
        assert_eq!(
            (found.checked, found.wrong, found.first_wrong),
            (100_000, 2, Some(71_001))
        );
    }

    #[test]
    fn nan_and_poison_values_fail_verification() {
        for poison in [
            f32::NAN,
            f32::INFINITY,
            f32::POISON,
            f32::from_bits(u32::MAX),
        ] {
            assert!(
                !compare_elements(&[1.0, poison], 0, 1e30, expect_one).ok,
                "{poison}"
            );
        }
    }

    #[test]
    fn empty_check_is_a_failure() {
        assert!(!compare_elements::<f32>(&[], 0, 1.0, expect_one).ok);
        assert!(!compare_words(&[], 0, |_| 0).ok);
        assert!(compare_words(&[5, 6], 5, |index| index).ok);
        assert_eq!(
            compare_words(&[5, 7], 5, |index| index).first_wrong,
            Some(6)
        );
    }

    #[test]
    fn double_double_sum_and_product_keep_rounding_error() {
        let tiny = f64::EPSILON / 8.0;
        let sum = DoubleDouble::from_f64(1.0) + DoubleDouble::from_f64(tiny);
        assert_eq!(sum.distance_to(1.0).to_bits(), tiny.to_bits());
        let near = 1.0 + f64::EPSILON;
        // (1 + e)^2 is 1 + 2e + e^2. An f64 cannot represent the last term.
        let square = DoubleDouble::from_f64(near) * DoubleDouble::from_f64(near);
        assert_eq!(
            square.distance_to(near * near).to_bits(),
            (f64::EPSILON * f64::EPSILON).to_bits()
        );
    }

    #[test]
    fn distance_to_nan_is_nan() {
        assert!(DoubleDouble::from_f64(1.0).distance_to(f64::NAN).is_nan());
    }
}
