//! What the parts of a GPU do, where the hardware counts it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use ts_rs::TS;

use super::{Reading, reading::absent};

/// Shares of the time since the sample before, averaged over all multiprocessors, from the
/// hardware's own counters (NVML's GPU Performance Monitoring, on Hopper and later).
/// `utilization.gpu_percent` says 100 as soon as one kernel runs; these say how much of the GPU it
/// used.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS, JsonSchema)]
pub struct Activity {
    /// Time in which the graphics or compute engine was busy at all (`GRAPHICS_UTIL`).
    pub graphics_percent: Reading<f64>,
    /// Time in which a multiprocessor had at least one warp (`SM_UTIL`).
    pub sm_percent: Reading<f64>,
    /// Warps that were resident, of those that could be (`SM_OCCUPANCY`).
    pub occupancy_percent: Reading<f64>,
    /// Time in which the tensor cores worked on anything (`ANY_TENSOR_UTIL`).
    pub tensor_percent: Reading<f64>,
    /// Of that, on half-precision and narrower floating-point numbers (`HMMA_TENSOR_UTIL`).
    pub tensor_half_percent: Reading<f64>,
    /// Of that, on integers (`IMMA_TENSOR_UTIL`).
    pub tensor_integer_percent: Reading<f64>,
    /// Of that, on double-precision numbers (`DFMA_TENSOR_UTIL`).
    pub tensor_double_percent: Reading<f64>,
    /// Time in which the double-precision units worked (`FP64_UTIL`).
    pub fp64_percent: Reading<f64>,
    /// Time in which the single-precision units worked (`FP32_UTIL`).
    pub fp32_percent: Reading<f64>,
    /// Time in which the half-precision units worked (`FP16_UTIL`).
    pub fp16_percent: Reading<f64>,
    /// Time in which the integer units worked (`INTEGER_UTIL`).
    pub integer_percent: Reading<f64>,
    /// Bandwidth of device memory in use, of what it can do (`DRAM_BW_UTIL`).
    pub dram_bandwidth_percent: Reading<f64>,
}

absent! {
    Activity { graphics_percent, sm_percent, occupancy_percent, tensor_percent, tensor_half_percent,
        tensor_integer_percent, tensor_double_percent, fp64_percent, fp32_percent, fp16_percent, integer_percent,
        dram_bandwidth_percent }
}
