//! The kernel of `chase.cu`, which makes dependent loads.

use super::Known;

/// Arguments: the final index, the array, the first index, the number of steps.
pub(super) const KERNELS: &[Known] = &[("chase", |given, _| {
    let mut at = given.read_argument::<u64>(2);
    for _ in 0..given.read_argument::<u64>(3) {
        at = given.array_at::<u64>(1, at + 1)[at as usize];
    }
    given.array_at::<u64>(0, 1)[0] = at;
    (given.read_argument(0), 8)
})];
