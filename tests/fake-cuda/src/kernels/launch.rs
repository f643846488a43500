//! The kernels of `launch.cu`, which do almost nothing.

use super::Known;

/// Arguments: the counter, if the kernel has one.
pub(super) const KERNELS: &[Known] = &[
    ("empty", |_, _| (0, 0)),
    ("count", |given, _| {
        given.array_at::<u64>(0, 1)[0] += 1;
        (given.read_argument(0), 8)
    }),
];
