//! Kernels that show what memory is not: `oom.cu`.

use std::time::Duration;

use super::Known;
use crate::streams;

pub(super) const KERNELS: &[Known] = &[
    // Arguments: how long to wait, in ns.
    ("oom_wait", |given, _| {
        streams::wait(Duration::from_nanos(given.at(0)));
        (0, 0)
    }),
    // Arguments: where to write, and how often to go round. It never comes so far where a block is as large as can be.
    ("oom_registers", |given, blocks| {
        given.array::<f32>(0, blocks).fill(0.0);
        (given.at(0), blocks as usize * size_of::<f32>())
    }),
];

pub(super) fn registers(kernel: &str) -> u32 {
    if kernel == "oom_registers" { 102 } else { 32 }
}
