//! The exponential function without a branch, so that loops around it work on as many numbers at once as the processor has
//! room for. It also takes the same time with every C library: the function that the oldest ones have is a tenth slower.
//!
//! The number less a multiple of the logarithm of 2 is within 0.35 around 0, where a few terms of Taylor's series are as
//! exact as the type; the multiple is the exponent of the result.

use std::f32::consts::LOG2_E;

/// Added to a small number, it leaves no place for a fraction, and the lowest bits count whole ones.
const SHIFT: f32 = 12_582_912.0; // 1.5 * 2^23
/// The logarithm of 2 in two parts: multiples of the first are exact.
const LN_2: [f32; 2] = [f32::from_bits(0x3f31_7200), f32::from_bits(0x35bf_be8e)];
/// What each term of the series is of the one before it, the last one first.
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
pub(crate) fn exp(x: f32) -> f32 {
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

    #[test]
    fn it_is_within_two_units_of_the_last_place() {
        for at in -1_040_000..890_000 {
            let x = at as f32 * 1e-4;
            let expected = f64::from(x).exp();
            let unit = (expected as f32).abs().max(f32::MIN_POSITIVE) * f32::EPSILON;
            let error = (f64::from(exp(x)) - expected).abs() / f64::from(unit);
            assert!(
                error <= 2.0 || expected > f64::from(f32::MAX),
                "{x}: {} for {expected}",
                exp(x)
            );
        }
    }

    #[test]
    fn what_is_no_usual_number_has_its_result() {
        let results =
            [0.0, -0.0, f32::NEG_INFINITY, -200.0, f32::INFINITY, 200.0].map(|x| exp(x).to_bits());
        assert_eq!(
            results,
            [1.0, 1.0, 0.0, 0.0, f32::INFINITY, f32::INFINITY].map(f32::to_bits)
        );
        assert!(exp(f32::NAN).is_nan());
    }
}
