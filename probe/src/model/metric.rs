//! The catalogue of the numbers of a GPU that can be drawn over time.
//!
//! A reading that should have a history (and a chart) needs one line here.

use super::GpuSample;

/// One number of a GPU.
#[derive(Debug, Clone, Copy)]
pub struct Metric {
    /// Its name in history frames: the path in [`GpuSample`], joined by dots; it ends in the unit.
    pub id: &'static str,
    /// Takes it out of a sample; `None` where it is absent.
    pub read: fn(&GpuSample) -> Option<f64>,
}

/// Every metric that history keeps.
pub const METRICS: &[Metric] = &[
    Metric { id: "utilization.gpu_percent", read: |gpu| gpu.utilization.gpu_percent.value().copied() },
    Metric { id: "activity.sm_percent", read: |gpu| gpu.activity.value()?.sm_percent.value().copied() },
    Metric { id: "activity.tensor_percent", read: |gpu| gpu.activity.value()?.tensor_percent.value().copied() },
    Metric { id: "memory.used_bytes", read: |gpu| gpu.memory.used_bytes.value().map(|bytes| *bytes as f64) },
    Metric { id: "power.draw_watts", read: |gpu| gpu.power.draw_watts.value().copied() },
    Metric { id: "temperature.gpu_celsius", read: |gpu| gpu.temperature.gpu_celsius.value().copied() },
    Metric { id: "clocks.sm_mhz", read: |gpu| gpu.clocks.sm_mhz.value().map(|mhz| f64::from(*mhz)) },
];
