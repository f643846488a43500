//! Traces: values that the driver recorded between two samples.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use ts_rs::TS;

/// Values of one metric of one GPU from the driver's own buffer (`nvmlDeviceGetSamples`).
///
/// Consecutive traces of a GPU and metric do not overlap, and omit no value unless `gap` is `true`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS, JsonSchema)]
pub struct Trace {
    /// NVML's index of the GPU.
    pub index: u32,
    /// The GPU's UUID, if the driver reports it.
    pub uuid: Option<String>,
    /// The metric that was recorded.
    pub metric: TraceMetric,
    /// The driver's timestamp of the first value, in microseconds since the Unix epoch.
    pub start_us: u64,
    /// The time from `start_us` to each value, in microseconds, in ascending order.
    pub offsets_us: Vec<u32>,
    /// The recorded values, one for each offset.
    pub values: Vec<f64>,
    /// Whether values before the first one may be missing, because the driver's buffer was read too
    /// late.
    pub gap: bool,
}

/// The metrics that the driver records.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, TS, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum TraceMetric {
    /// The board's power draw in watts, 50 times a second (`NVML_TOTAL_POWER_SAMPLES`).
    PowerWatts,
    /// Share of time in which a kernel ran, 5 times a second (`NVML_GPU_UTILIZATION_SAMPLES`).
    GpuPercent,
    /// Share of time in which device memory was read or written, 5 times a second
    /// (`NVML_MEMORY_UTILIZATION_SAMPLES`).
    MemoryPercent,
}
