//! Power and energy.

use std::ffi::{c_uint, c_ulonglong};

use nvml_wrapper_sys::bindings::{nvmlDevice_t, nvmlReturn_t};

use super::one_value;
use crate::{
    call::{Gpu, device},
    out::put,
};

/// How low the limit of a board can be set, as a share of its default.
const LOWEST_LIMIT: f64 = 200.0 / 700.0;

one_value! {
    fn nvmlDeviceGetPowerUsage(c_uint) = |gpu| Ok(milliwatts(gpu.state().power_watts));
    fn nvmlDeviceGetEnforcedPowerLimit(c_uint) = |gpu| Ok(limit(gpu));
    fn nvmlDeviceGetPowerManagementLimit(c_uint) = |gpu| Ok(limit(gpu));
    fn nvmlDeviceGetPowerManagementDefaultLimit(c_uint) = |gpu| Ok(limit(gpu));
    fn nvmlDeviceGetTotalEnergyConsumption(c_ulonglong) = |gpu| Ok(millijoules(gpu));
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlDeviceGetPowerManagementLimitConstraints(
    handle: nvmlDevice_t,
    lowest: *mut c_uint,
    highest: *mut c_uint,
) -> nvmlReturn_t {
    device("nvmlDeviceGetPowerManagementLimitConstraints", handle, |gpu| {
        let limit = limit(gpu);
        // SAFETY: NVML's contract: each pointer is null or may be written.
        unsafe { put(lowest, (f64::from(limit) * LOWEST_LIMIT) as c_uint).and_then(|()| put(highest, limit)) }
    })
}

fn limit(gpu: &Gpu) -> c_uint {
    milliwatts(gpu.state().power_limit_watts)
}

/// NVML's unit.
pub(super) fn milliwatts(watts: f64) -> c_uint {
    (watts * 1000.0).round() as c_uint
}

pub(super) fn millijoules(gpu: &Gpu) -> u64 {
    gpu.session.meters.millijoules(&gpu.session.world, gpu.index, gpu.elapsed_ms)
}
