//! Virtual GPUs, of which there are none: this is a virtual machine that was given whole boards.

use std::ffi::c_uint;

use nvml_wrapper_sys::bindings::{
    nvmlDevice_t, nvmlDeviceVgpuCapability_t,
    nvmlGpuVirtualizationMode_NVML_GPU_VIRTUALIZATION_MODE_PASSTHROUGH as PASSTHROUGH,
    nvmlGpuVirtualizationMode_t, nvmlHostVgpuMode_t, nvmlReturn_t, nvmlVgpuDriverCapability_t,
    nvmlVgpuHeterogeneousMode_t,
};

use super::exports;
use crate::{
    call::{device, system},
    code::Code,
};

exports! {
    fn nvmlDeviceGetVirtualizationMode(device |_|) -> nvmlGpuVirtualizationMode_t { Ok(PASSTHROUGH) }
    fn nvmlDeviceGetHostVgpuMode(device |_|) -> nvmlHostVgpuMode_t { Err(Code::NOT_SUPPORTED) }
    fn nvmlDeviceGetVgpuHeterogeneousMode(device |_|) fills own: nvmlVgpuHeterogeneousMode_t, 1 {
        Err(Code::NOT_SUPPORTED)
    }
}

#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceGetVgpuCapabilities(
    handle: nvmlDevice_t,
    _capability: nvmlDeviceVgpuCapability_t,
    _has: *mut c_uint,
) -> nvmlReturn_t {
    device("nvmlDeviceGetVgpuCapabilities", handle, |_| {
        Err(Code::NOT_SUPPORTED)
    })
}

#[unsafe(no_mangle)]
extern "C" fn nvmlGetVgpuDriverCapabilities(
    _capability: nvmlVgpuDriverCapability_t,
    _has: *mut c_uint,
) -> nvmlReturn_t {
    system("nvmlGetVgpuDriverCapabilities", |_| {
        Err(Code::NOT_SUPPORTED)
    })
}
