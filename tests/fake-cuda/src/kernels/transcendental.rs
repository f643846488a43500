//! The kernel of `transcendental.cu`, which calls expensive functions.

use super::{Known, map_arrays};

/// Arguments: the result, the array, the number of elements, the number of rounds.
pub(super) const KERNELS: &[Known] = &[("transcendental", |given, _| {
    let rounds: u64 = given.read_argument(3);
    map_arrays::<f32>(given, 2, 1, |a, _| {
        (0..rounds)
            .map(|round| a + round as f32)
            .map(|x| x.sin() + (-x).exp() + 1.0 / (1.0 + x * x).sqrt())
            .sum()
    })
})];
