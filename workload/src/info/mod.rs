//! What the machine has to compute with, and what that can do at best.

mod cpu;
mod gpu;
mod peaks;

pub(crate) use self::gpu::{compute_peak, memory_bandwidth};
pub use self::{
    cpu::{Cache, Cpu},
    gpu::{GpuInfo, Gpus},
    peaks::{ClockOf, Peak, Peaks},
};
