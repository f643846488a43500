//! What the driver itself recorded between two samples.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use ts_rs::TS;

/// The driver's own buffer of one number of one GPU, as far as it was not handed out before
/// (`nvmlDeviceGetSamples`).
///
/// Neighboring traces of a GPU and metric have no sample twice, and leave none out unless `gap`
/// says so.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS, JsonSchema)]
pub struct Trace {
    /// NVML's index of the GPU.
    pub index: u32,
    /// Its UUID, where the driver has told it.
    pub uuid: Option<String>,
    /// Which number.
    pub metric: TraceMetric,
    /// The driver's time of the first sample, in microseconds since the Unix epoch.
    pub start_us: u64,
    /// The time of each sample after `start_us`, in microseconds, rising.
    pub offsets_us: Vec<u32>,
    /// The value of each sample.
    pub values: Vec<f64>,
    /// Whether the driver may have dropped samples before the first, since it was asked too late.
    pub gap: bool,
}

/// What the driver records.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, TS, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum TraceMetric {
    /// The board's draw in watts, 50 times a second (`NVML_TOTAL_POWER_SAMPLES`).
    PowerWatts,
    /// Time in which a kernel ran, 5 times a second (`NVML_GPU_UTILIZATION_SAMPLES`).
    GpuPercent,
    /// Time in which device memory was read or written, 5 times a second
    /// (`NVML_MEMORY_UTILIZATION_SAMPLES`).
    MemoryPercent,
}
