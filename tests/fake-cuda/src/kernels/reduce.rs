//! The kernels of `reduce.cu`: the sum of an array.

use super::{Arguments, Known};
use crate::activity::moves;

/// Arguments: a sum for each block, the array, the number of elements.
pub(super) const KERNELS: &[Known] = &[
    ("reduce_fp32", |given, blocks| sum::<f32>(given, blocks)),
    ("reduce_fp64", |given, blocks| sum::<f64>(given, blocks)),
];

fn sum<T: Copy + Default + Into<f64> + FromWide>(given: Arguments, blocks: u64) -> (u64, usize) {
    let out = given.array::<T>(0, blocks);
    let array = given.array::<T>(1, given.at(2));
    let total: f64 = array.iter().map(|element| (*element).into()).sum();
    moves(size_of_val(array) + size_of_val(out));
    out.fill(T::default());
    // A fault flips a bit in the middle of the output, so the sum must be there.
    let middle = out.len() / 2;
    out[middle] = T::from_wide(total);
    (given.at(0), size_of_val(out))
}

/// Conversion of a sum into its stored type.
trait FromWide {
    fn from_wide(value: f64) -> Self;
}

impl FromWide for f32 {
    fn from_wide(value: f64) -> Self {
        value as f32
    }
}

impl FromWide for f64 {
    fn from_wide(value: f64) -> Self {
        value
    }
}
