//! Confidential computing, which is off.

use std::ffi::c_uint;

use nvml_wrapper_sys::bindings::{
    NVML_CC_SYSTEM_CPU_CAPS_NONE, NVML_CC_SYSTEM_GPUS_CC_CAPABLE,
    nvmlConfComputeGetKeyRotationThresholdInfo_t, nvmlConfComputeMemSizeInfo_t,
    nvmlConfComputeSystemCaps_t, nvmlConfComputeSystemState_t, nvmlReturn_t,
    nvmlSystemConfComputeSettings_t,
};

use super::exports;
use crate::{call::system, out::put};

/// How much of an advantage an attacker gets before keys are changed, where nobody has set it.
const ATTACKER_ADVANTAGE: u64 = 60;

exports! {
    // All memory is open to the host, but for what the driver keeps.
    fn nvmlDeviceGetConfComputeMemSizeInfo(device |gpu|) -> nvmlConfComputeMemSizeInfo_t {
        let state = gpu.state();
        let open = state.memory_total_bytes - state.memory_reserved_bytes;
        Ok(nvmlConfComputeMemSizeInfo_t { protectedMemSizeKib: 0, unprotectedMemSizeKib: open >> 10 })
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlSystemGetConfComputeState(
    state: *mut nvmlConfComputeSystemState_t,
) -> nvmlReturn_t {
    let off = nvmlConfComputeSystemState_t {
        environment: 0,
        ccFeature: 0,
        devToolsMode: 0,
    };
    // SAFETY: NVML's contract: the pointer is null or may be written.
    system("nvmlSystemGetConfComputeState", |_| unsafe {
        put(state, off)
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlSystemGetConfComputeCapabilities(
    caps: *mut nvmlConfComputeSystemCaps_t,
) -> nvmlReturn_t {
    let gpus_alone = nvmlConfComputeSystemCaps_t {
        cpuCaps: NVML_CC_SYSTEM_CPU_CAPS_NONE,
        gpusCaps: NVML_CC_SYSTEM_GPUS_CC_CAPABLE,
    };
    // SAFETY: NVML's contract: the pointer is null or may be written.
    system("nvmlSystemGetConfComputeCapabilities", |_| unsafe {
        put(caps, gpus_alone)
    })
}

exports! {
    fn nvmlSystemGetConfComputeSettings(system |_|) fills own: nvmlSystemConfComputeSettings_t, 1 {
        (own.environment, own.ccFeature, own.devToolsMode, own.multiGpuMode) = (0, 0, 0, 0);
        Ok(())
    }
    fn nvmlSystemGetConfComputeGpusReadyState(system |_|) -> c_uint { Ok(0) }
    fn nvmlSystemGetConfComputeKeyRotationThresholdInfo(
        system |_|
    ) fills info: nvmlConfComputeGetKeyRotationThresholdInfo_t, 1 {
        info.attackerAdvantage = ATTACKER_ADVANTAGE;
        Ok(())
    }
}
