//! Numbers of twice the precision of `f64`: the sum of two of them, of which the second is what the first lacks.

use std::ops::{Add, Mul};

/// A number of about 106 bits.
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

    /// How far a number is from it.
    pub(crate) fn distance(self, number: f64) -> f64 {
        ((number - self.high) - self.low).abs()
    }

    pub(crate) fn abs(self) -> f64 {
        self.high.abs()
    }
}

impl Add for DoubleDouble {
    type Output = Self;

    /// Knuth's sum: what is lost in rounding is found again by going back.
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

    /// What is lost in rounding is what a fused multiplication still has.
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

    #[test]
    fn what_an_f64_loses_is_kept() {
        let tiny = f64::EPSILON / 8.0;
        let sum = DoubleDouble::from_f64(1.0) + DoubleDouble::from_f64(tiny);
        assert_eq!(sum.distance(1.0).to_bits(), tiny.to_bits());
        let near = 1.0 + f64::EPSILON;
        // (1 + e)^2 is 1 + 2e + e^2, of which an f64 has no place for the last.
        let square = DoubleDouble::from_f64(near) * DoubleDouble::from_f64(near);
        assert_eq!(
            square.distance(near * near).to_bits(),
            (f64::EPSILON * f64::EPSILON).to_bits()
        );
    }

    #[test]
    fn nothing_is_near_to_no_number() {
        assert!(DoubleDouble::from_f64(1.0).distance(f64::NAN).is_nan());
    }
}
