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

/// How much of an advantage an attacker gets before keys are changed, where nobody has set it.
const ATTACKER_ADVANTAGE: u64 = 60;

one_value! {
    // All memory is open to the host, but for what the driver keeps.
    fn nvmlDeviceGetConfComputeMemSizeInfo(nvmlConfComputeMemSizeInfo_t) = |gpu| {
        let state = gpu.state();
        let open = state.memory_total_bytes - state.memory_reserved_bytes;
        Ok(nvmlConfComputeMemSizeInfo_t { protectedMemSizeKib: 0, unprotectedMemSizeKib: open >> 10 })
    };
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
unsafe extern "C" fn nvmlSystemGetConfComputeGpusReadyState(is_accepting_work: *mut c_uint) -> nvmlReturn_t {
    // SAFETY: NVML's contract: the pointer is null or may be written.
    system("nvmlSystemGetConfComputeGpusReadyState", |_| unsafe { put(is_accepting_work, 0) })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlSystemGetConfComputeKeyRotationThresholdInfo(
    info: *mut nvmlConfComputeGetKeyRotationThresholdInfo_t,
) -> nvmlReturn_t {
    system("nvmlSystemGetConfComputeKeyRotationThresholdInfo", |_| {
        // SAFETY: NVML's contract: the pointer is null or points at a structure with its version filled in.
        let [info] = unsafe { items(info, 1) }? else { return Err(Code::INVALID_ARGUMENT) };
        if info.version != version_of::<nvmlConfComputeGetKeyRotationThresholdInfo_t>(1) {
            return Err(Code::ARGUMENT_VERSION_MISMATCH);
        }
        info.attackerAdvantage = ATTACKER_ADVANTAGE;
        Ok(())
    })
}
