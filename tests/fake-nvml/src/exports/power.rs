//! Power and energy.

use std::ffi::{c_uint, c_ulonglong};

use nvml_wrapper_sys::bindings::{
    nvmlEnableState_enum_NVML_FEATURE_ENABLED as ENABLED, nvmlEnableState_t,
};

use super::exports;
use crate::call::Gpu;

exports! {
    fn nvmlDeviceGetPowerManagementMode(device |_|) -> nvmlEnableState_t { Ok(ENABLED) }
    fn nvmlDeviceGetPowerUsage(device |gpu|) -> c_uint { Ok(milliwatts(gpu.state().power_watts)) }
    fn nvmlDeviceGetEnforcedPowerLimit(device |gpu|) -> c_uint { Ok(limit(gpu)) }
    fn nvmlDeviceGetPowerManagementLimit(device |gpu|) -> c_uint { Ok(limit(gpu)) }
    fn nvmlDeviceGetPowerManagementDefaultLimit(device |gpu|) -> c_uint { Ok(highest_limit(gpu)) }
    fn nvmlDeviceGetTotalEnergyConsumption(device |gpu|) -> c_ulonglong { Ok(millijoules(gpu)) }
    fn nvmlDeviceGetPowerManagementLimitConstraints(device |gpu|) -> (c_uint, c_uint) {
        let lowest_watts = gpu.identity().lowest_limit_watts.round();
        Ok((milliwatts(lowest_watts), highest_limit(gpu)))
    }
}

pub(super) fn limit(gpu: &Gpu) -> c_uint {
    milliwatts(gpu.state().power_limit_watts)
}

/// The default is the highest.
pub(super) fn highest_limit(gpu: &Gpu) -> c_uint {
    milliwatts(gpu.identity().power_limit_watts)
}

/// NVML's unit.
pub(super) fn milliwatts(watts: f64) -> c_uint {
    (watts * 1000.0).round() as c_uint
}

pub(super) fn millijoules(gpu: &Gpu) -> u64 {
    (gpu.totals().energy_joules * 1000.0) as u64
}
