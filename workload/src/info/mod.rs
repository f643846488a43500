//! The machine's hardware for computing, and its theoretical peaks.

mod cpu;
mod gpu;
mod peaks;

pub(crate) use self::gpu::{compute_peak, memory_bandwidth};
pub use self::{
    cpu::{Cache, Cpu},
    gpu::{CudaGpus, GpuInfo},
    peaks::{ClockSource, Peak, Peaks},
};
