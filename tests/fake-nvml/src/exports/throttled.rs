//! For how long something held the clocks down.

use gpumon_probe::{model::ThrottleReason, vendor::sim::Totals};
use nvml_wrapper_sys::bindings::{
    nvmlPerfPolicyType_enum_NVML_PERF_POLICY_BOARD_LIMIT as BOARD_LIMIT,
    nvmlPerfPolicyType_enum_NVML_PERF_POLICY_LOW_UTILIZATION as LOW_UTILIZATION,
    nvmlPerfPolicyType_enum_NVML_PERF_POLICY_POWER as POWER,
    nvmlPerfPolicyType_enum_NVML_PERF_POLICY_RELIABILITY as RELIABILITY,
    nvmlPerfPolicyType_enum_NVML_PERF_POLICY_SYNC_BOOST as SYNC_BOOST,
    nvmlPerfPolicyType_enum_NVML_PERF_POLICY_THERMAL as THERMAL,
    nvmlPerfPolicyType_enum_NVML_PERF_POLICY_TOTAL_APP_CLOCKS as TOTAL_APP_CLOCKS,
    nvmlPerfPolicyType_enum_NVML_PERF_POLICY_TOTAL_BASE_CLOCKS as TOTAL_BASE_CLOCKS,
    nvmlPerfPolicyType_t, nvmlViolationTime_t,
};

use super::exports;
use crate::code::Code;

exports! {
    fn nvmlDeviceGetViolationStatus(device |gpu|, policy: nvmlPerfPolicyType_t) -> nvmlViolationTime_t {
        Ok(nvmlViolationTime_t {
            referenceTime: gpu.machine().stamp_us(gpu.index, gpu.elapsed_ms),
            violationTime: held_down_ns(&gpu.totals(), policy)?,
        })
    }
}

/// How long the clocks have been held down for a policy's sake.
pub(super) fn held_down_ns(totals: &Totals, policy: nvmlPerfPolicyType_t) -> Result<u64, Code> {
    match policy {
        POWER => Ok(sum_ns(totals, &Totals::POWER)),
        THERMAL => Ok(sum_ns(totals, &Totals::THERMAL)),
        SYNC_BOOST => Ok(sum_ns(totals, &[ThrottleReason::SyncBoost])),
        LOW_UTILIZATION => Ok(sum_ns(totals, &[ThrottleReason::GpuIdle])),
        BOARD_LIMIT | RELIABILITY => Ok(0),
        TOTAL_APP_CLOCKS | TOTAL_BASE_CLOCKS => {
            Ok(sum_ns(totals, &Totals::POWER) + sum_ns(totals, &Totals::THERMAL))
        }
        _ => Err(Code::INVALID_ARGUMENT),
    }
}

/// For how long these have held the clocks down.
pub(super) fn sum_ns(totals: &Totals, reasons: &[ThrottleReason]) -> u64 {
    (reasons
        .iter()
        .map(|reason| totals.throttled_s(*reason))
        .sum::<f64>()
        * 1e9) as u64
}
