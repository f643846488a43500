//! What the machine has to compute with, and what that can do at best.

mod cpu;
mod gpu;
mod peaks;

pub(crate) use self::gpu::compute_peak;
pub use self::{
    cpu::{Cache, Cpu},
    gpu::{GpuInfo, memory_bandwidth},
    peaks::{ClockOf, Peak, Peaks},
};
