//! Confidential computing, which is off.

use std::ffi::c_uint;

use nvml_wrapper_sys::bindings::{
    NVML_CC_SYSTEM_CPU_CAPS_NONE, NVML_CC_SYSTEM_GPUS_CC_CAPABLE, nvmlConfComputeGetKeyRotationThresholdInfo_t,
    nvmlConfComputeMemSizeInfo_t, nvmlConfComputeSystemCaps_t, nvmlConfComputeSystemState_t, nvmlReturn_t,
    nvmlSystemConfComputeSettings_t,
};

use super::{one_value, version_of};
use crate::{
    call::system,
    code::Code,
    out::{items, put},
};

one_value! {
    // All memory is open to the host.
    fn nvmlDeviceGetConfComputeMemSizeInfo(nvmlConfComputeMemSizeInfo_t) = |gpu| Ok(nvmlConfComputeMemSizeInfo_t {
        protectedMemSizeKib: 0,
        unprotectedMemSizeKib: gpu.identity().memory_total_bytes >> 10,
    });
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlSystemGetConfComputeState(state: *mut nvmlConfComputeSystemState_t) -> nvmlReturn_t {
    let off = nvmlConfComputeSystemState_t { environment: 0, ccFeature: 0, devToolsMode: 0 };
    // SAFETY: NVML's contract: the pointer is null or may be written.
    system("nvmlSystemGetConfComputeState", |_| unsafe { put(state, off) })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlSystemGetConfComputeCapabilities(caps: *mut nvmlConfComputeSystemCaps_t) -> nvmlReturn_t {
    let gpus_alone =
        nvmlConfComputeSystemCaps_t { cpuCaps: NVML_CC_SYSTEM_CPU_CAPS_NONE, gpusCaps: NVML_CC_SYSTEM_GPUS_CC_CAPABLE };
    // SAFETY: NVML's contract: the pointer is null or may be written.
    system("nvmlSystemGetConfComputeCapabilities", |_| unsafe { put(caps, gpus_alone) })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlSystemGetConfComputeSettings(settings: *mut nvmlSystemConfComputeSettings_t) -> nvmlReturn_t {
    system("nvmlSystemGetConfComputeSettings", |_| {
        // SAFETY: NVML's contract: the pointer is null or points at a structure with its version filled in.
        let [own] = unsafe { items(settings, 1) }? else { return Err(Code::INVALID_ARGUMENT) };
        if own.version != version_of::<nvmlSystemConfComputeSettings_t>(1) {
            return Err(Code::ARGUMENT_VERSION_MISMATCH);
        }
        (own.environment, own.ccFeature, own.devToolsMode, own.multiGpuMode) = (0, 0, 0, 0);
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn nvmlSystemGetConfComputeGpusReadyState(_ready: *mut c_uint) -> nvmlReturn_t {
    system("nvmlSystemGetConfComputeGpusReadyState", |_| Err(Code::NOT_SUPPORTED))
}

#[unsafe(no_mangle)]
extern "C" fn nvmlSystemGetConfComputeKeyRotationThresholdInfo(
    _info: *mut nvmlConfComputeGetKeyRotationThresholdInfo_t,
) -> nvmlReturn_t {
    system("nvmlSystemGetConfComputeKeyRotationThresholdInfo", |_| Err(Code::NOT_SUPPORTED))
}
