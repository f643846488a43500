//! Power and energy.

use std::ffi::{c_uint, c_ulonglong};

use nvml_wrapper_sys::bindings::{
    nvmlDevice_t, nvmlEnableState_enum_NVML_FEATURE_ENABLED as ENABLED, nvmlEnableState_t, nvmlReturn_t,
};

use super::one_value;
use crate::{
    call::{Gpu, device},
    out::put,
};

one_value! {
    fn nvmlDeviceGetPowerManagementMode(nvmlEnableState_t) = |_| Ok(ENABLED);
    fn nvmlDeviceGetPowerUsage(c_uint) = |gpu| Ok(milliwatts(gpu.state().power_watts));
    fn nvmlDeviceGetEnforcedPowerLimit(c_uint) = |gpu| Ok(limit(gpu));
    fn nvmlDeviceGetPowerManagementLimit(c_uint) = |gpu| Ok(limit(gpu));
    fn nvmlDeviceGetPowerManagementDefaultLimit(c_uint) = |gpu| Ok(highest_limit(gpu));
    fn nvmlDeviceGetTotalEnergyConsumption(c_ulonglong) = |gpu| Ok(millijoules(gpu));
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlDeviceGetPowerManagementLimitConstraints(
    handle: nvmlDevice_t,
    lowest: *mut c_uint,
    highest: *mut c_uint,
) -> nvmlReturn_t {
    device("nvmlDeviceGetPowerManagementLimitConstraints", handle, |gpu| {
        let lowest_watts = gpu.identity().lowest_limit_watts.round();
        // SAFETY: NVML's contract: each pointer is null or may be written.
        unsafe { put(lowest, milliwatts(lowest_watts)).and_then(|()| put(highest, highest_limit(gpu))) }
    })
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
