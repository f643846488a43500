//! The catalogue of the numbers of a GPU that can be drawn over time.
//!
//! A reading that should have a history (and a chart) needs one line here.

use super::GpuSample;

/// One number of a GPU.
#[derive(Debug, Clone, Copy)]
pub struct Metric {
    /// Its name in history frames: the path in [`GpuSample`], joined by dots.
    pub id: &'static str,
    /// The unit of its values.
    pub unit: Unit,
    /// Takes it out of a sample; `None` where it is absent.
    pub read: fn(&GpuSample) -> Option<f64>,
}

/// Units, as the names of readings spell them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// 0 to 100.
    Percent,
    /// Bytes.
    Bytes,
    /// Watts.
    Watts,
    /// Degrees Celsius.
    Celsius,
    /// Megahertz.
    Mhz,
}

/// Every metric that history keeps.
pub const METRICS: &[Metric] = &[
    Metric {
        id: "utilization.gpu_percent",
        unit: Unit::Percent,
        read: |gpu| gpu.utilization.gpu_percent.value().copied(),
    },
    Metric {
        id: "activity.sm_percent",
        unit: Unit::Percent,
        read: |gpu| gpu.activity.value()?.sm_percent.value().copied(),
    },
    Metric {
        id: "activity.tensor_percent",
        unit: Unit::Percent,
        read: |gpu| gpu.activity.value()?.tensor_percent.value().copied(),
    },
    Metric {
        id: "memory.used_bytes",
        unit: Unit::Bytes,
        read: |gpu| gpu.memory.used_bytes.value().map(|bytes| *bytes as f64),
    },
    Metric { id: "power.draw_watts", unit: Unit::Watts, read: |gpu| gpu.power.draw_watts.value().copied() },
    Metric {
        id: "temperature.gpu_celsius",
        unit: Unit::Celsius,
        read: |gpu| gpu.temperature.gpu_celsius.value().copied(),
    },
    Metric { id: "clocks.sm_mhz", unit: Unit::Mhz, read: |gpu| gpu.clocks.sm_mhz.value().map(|mhz| f64::from(*mhz)) },
];
