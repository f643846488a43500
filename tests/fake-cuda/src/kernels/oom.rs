//! The kernels of `oom.cu`, which use resources other than memory.

use std::time::Duration;

use super::Known;
use crate::streams;

pub(super) const KERNELS: &[Known] = &[
    // Arguments: the time to wait in nanoseconds.
    ("oom_wait", |given, _| {
        streams::set_wait_time(Duration::from_nanos(given.read_argument(0)));
        (0, 0)
    }),
    // Arguments: the output and the number of rounds. A block of the maximum size has too few
    // registers, so the kernel cannot start with it.
    ("oom_registers", |given, blocks| {
        given.array_at::<f32>(0, blocks).fill(0.0);
        (given.read_argument(0), blocks as usize * size_of::<f32>())
    }),
];

pub(super) fn registers_per_thread(kernel: &str) -> u32 {
    if kernel == "oom_registers" { 102 } else { 32 }
}
