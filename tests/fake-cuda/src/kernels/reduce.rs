//! The kernels of `reduce.cu`: the sum of an array.

use super::{Arguments, Known};
use crate::activity::record_traffic;

/// Arguments: a sum for each block, the array, the number of elements.
pub(super) const KERNELS: &[Known] = &[
    ("reduce_fp32", |given, blocks| {
        sum_elements::<f32>(given, blocks)
    }),
    ("reduce_fp64", |given, blocks| {
        sum_elements::<f64>(given, blocks)
    }),
];

fn sum_elements<T: Copy + Default + Into<f64> + FromDouble>(
    given: Arguments,
    blocks: u64,
) -> (u64, usize) {
    let out = given.array_at::<T>(0, blocks);
    let array = given.array_at::<T>(1, given.read_argument(2));
    let total: f64 = array.iter().map(|element| (*element).into()).sum();
    record_traffic(size_of_val(array) + size_of_val(out));
    out.fill(T::default());
    // A fault flips a bit in the middle of the output. The sum is stored there, so that the fault
    // changes it.
    let middle = out.len() / 2;
    out[middle] = T::from_f64(total);
    (given.read_argument(0), size_of_val(out))
}

/// Conversion of a sum into its stored type.
trait FromDouble {
    fn from_f64(value: f64) -> Self;
}

impl FromDouble for f32 {
    fn from_f64(value: f64) -> Self {
        value as f32
    }
}

impl FromDouble for f64 {
    fn from_f64(value: f64) -> Self {
        value
    }
}
