//! Modes: what a data-centre board can and cannot do.

use nvml_wrapper_sys::bindings::{
    nvmlComputeMode_enum_NVML_COMPUTEMODE_DEFAULT, nvmlComputeMode_t, nvmlDevice_t,
    nvmlEnableState_enum_NVML_FEATURE_DISABLED as DISABLED, nvmlEnableState_enum_NVML_FEATURE_ENABLED as ENABLED,
    nvmlEnableState_t, nvmlReturn_t,
};

use super::one_value;
use crate::{call::device, code::Code, out::put};

one_value! {
    fn nvmlDeviceGetPersistenceMode(nvmlEnableState_t) = |gpu| Ok(if gpu.identity().persistence { ENABLED } else { DISABLED });
    fn nvmlDeviceGetComputeMode(nvmlComputeMode_t) = |_| Ok(nvmlComputeMode_enum_NVML_COMPUTEMODE_DEFAULT);
    fn nvmlDeviceGetDisplayActive(nvmlEnableState_t) = |_| Ok(DISABLED);
    // Drivers of the 580 branch have given up this one.
    fn nvmlDeviceGetDisplayMode(nvmlEnableState_t) = |_| Err(Code::DEPRECATED);
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlDeviceGetEccMode(
    handle: nvmlDevice_t,
    current: *mut nvmlEnableState_t,
    pending: *mut nvmlEnableState_t,
) -> nvmlReturn_t {
    // SAFETY: NVML's contract: each pointer is null or may be written.
    device("nvmlDeviceGetEccMode", handle, |_| unsafe { put(current, ENABLED).and_then(|()| put(pending, ENABLED)) })
}
