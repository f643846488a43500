//! What a product should be: in `f64`, in which products of two `f32` are exact and their sums nearly so.

use rayon::prelude::*;

use crate::{
    check::{Expected, Verification, compare},
    exact::Exact,
    random::{SEED_A, SEED_B, fill},
    real::Real,
};

/// The largest error, in units of the precision at the size of what was added up. The signs of inputs and rounding are
/// random, so that errors grow as the root of their number: six deviations are less than two.
const TOLERANCE: f64 = 4.0;

/// One of the two factors, by its seed.
pub(super) fn factor(seed: u64, side: u64) -> Vec<f32> {
    let mut factor = vec![0.0; (side * side) as usize];
    fill(&mut factor, |index| f32::random(seed, index));
    factor
}

/// Checks every element of a product of this side.
pub(super) fn check(product: &[f32], side: u64) -> Verification {
    let (a, b) = (factor(SEED_A, side), factor(SEED_B, side));
    let side = side as usize;
    let mut expected = vec![0.0_f64; side * side];
    expected.par_chunks_mut(side).zip(a.par_chunks(side)).for_each(|(row, a)| {
        for (a, b) in a.iter().zip(b.chunks(side)) {
            let a = f64::from(*a);
            row.iter_mut().zip(b).for_each(|(sum, b)| *sum += a * f64::from(*b));
        }
    });
    // No sum of products is larger than the lengths of row and column, multiplied.
    let squares = |numbers: &mut dyn Iterator<Item = f32>| numbers.map(|x| f64::from(x).powi(2)).sum::<f64>().sqrt();
    let rows: Vec<f64> = a.chunks(side).map(|row| squares(&mut row.iter().copied())).collect();
    let columns: Vec<f64> =
        (0..side).map(|column| squares(&mut b.iter().skip(column).step_by(side).copied())).collect();
    compare(product, 0, TOLERANCE, |index| {
        let index = index as usize;
        Expected { value: Exact::of(expected[index]), scale: rows[index / side] * columns[index % side] }
    })
}
