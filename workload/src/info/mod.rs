//! The hardware that the machine computes with, and its theoretical peaks.

mod cpu;
mod gpu;
mod peaks;

pub(crate) use self::gpu::{compute_peak, memory_bandwidth};
pub use self::{
    cpu::{Cache, Cpu},
    gpu::{GpuInfo, Gpus},
    peaks::{ClockOf, Peak, Peaks},
};
