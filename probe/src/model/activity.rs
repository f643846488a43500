//! The activity of a GPU's units, from hardware counters.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use ts_rs::TS;

use super::{Reading, reading::absent};

/// The activity of a GPU's units since the previous sample, averaged over all multiprocessors, from
/// hardware counters (NVML's GPU Performance Monitoring, on Hopper and later).
/// `utilization.gpu_percent` is 100 as soon as one kernel runs; these values show how much of the
/// GPU the kernel used.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS, JsonSchema)]
pub struct Activity {
    /// Share of time in which the graphics or compute engine was busy (`GRAPHICS_UTIL`).
    pub graphics_percent: Reading<f64>,
    /// Share of time in which a multiprocessor had at least one warp (`SM_UTIL`).
    pub sm_percent: Reading<f64>,
    /// Resident warps as a share of the maximum (`SM_OCCUPANCY`).
    pub occupancy_percent: Reading<f64>,
    /// Share of time in which the tensor cores were busy (`ANY_TENSOR_UTIL`).
    pub tensor_percent: Reading<f64>,
    /// Share of time in which the tensor cores worked on half-precision or narrower floating-point
    /// numbers (`HMMA_TENSOR_UTIL`).
    pub tensor_half_percent: Reading<f64>,
    /// Share of time in which the tensor cores worked on integers (`IMMA_TENSOR_UTIL`).
    pub tensor_integer_percent: Reading<f64>,
    /// Share of time in which the tensor cores worked on double-precision numbers
    /// (`DFMA_TENSOR_UTIL`).
    pub tensor_double_percent: Reading<f64>,
    /// Share of time in which the double-precision units were busy (`FP64_UTIL`).
    pub fp64_percent: Reading<f64>,
    /// Share of time in which the single-precision units were busy (`FP32_UTIL`).
    pub fp32_percent: Reading<f64>,
    /// Share of time in which the half-precision units were busy (`FP16_UTIL`).
    pub fp16_percent: Reading<f64>,
    /// Share of time in which the integer units were busy (`INTEGER_UTIL`).
    pub integer_percent: Reading<f64>,
    /// Used bandwidth of device memory as a share of the peak bandwidth (`DRAM_BW_UTIL`).
    pub dram_bandwidth_percent: Reading<f64>,
}

absent! {
    Activity { graphics_percent, sm_percent, occupancy_percent, tensor_percent, tensor_half_percent,
        tensor_integer_percent, tensor_double_percent, fp64_percent, fp32_percent, fp16_percent, integer_percent,
        dram_bandwidth_percent }
}
