//! Modes: how a board is set, and which settings it does not have.

use gpumon_probe::vendor::sim::Architecture;
use nvml_wrapper_sys::bindings::{
    nvmlComputeMode_enum_NVML_COMPUTEMODE_DEFAULT, nvmlComputeMode_t, nvmlDeviceAddressingMode_t,
    nvmlDeviceCapabilities_t, nvmlDramEncryptionInfo_t, nvmlDriverModel_t,
    nvmlEnableState_enum_NVML_FEATURE_DISABLED as DISABLED,
    nvmlEnableState_enum_NVML_FEATURE_ENABLED as ENABLED, nvmlEnableState_t,
    nvmlGpuOperationMode_t, nvmlMask255_t, nvmlWorkloadPowerProfileCurrentProfiles_t,
};

use super::exports;
use crate::code::Code;

exports! {
    fn nvmlDeviceGetPersistenceMode(device |gpu|) -> nvmlEnableState_t {
        Ok(if gpu.identity().persistence { ENABLED } else { DISABLED })
    }
    fn nvmlDeviceGetComputeMode(device |_|) -> nvmlComputeMode_t { Ok(nvmlComputeMode_enum_NVML_COMPUTEMODE_DEFAULT) }
    fn nvmlDeviceGetDisplayActive(device |_|) -> nvmlEnableState_t { Ok(DISABLED) }
    // A driver of the 580 branch says so of an H200, which has no plug for one.
    fn nvmlDeviceGetDisplayMode(device |_|) -> nvmlEnableState_t { Ok(ENABLED) }
    fn nvmlDeviceGetEccMode(device |gpu|) -> (nvmlEnableState_t, nvmlEnableState_t) {
        if gpu.identity().ecc { Ok((ENABLED, ENABLED)) } else { Err(Code::NOT_SUPPORTED) }
    }
    // Boards had it in the days of Kepler.
    fn nvmlDeviceGetGpuOperationMode(device |_|) -> (nvmlGpuOperationMode_t, nvmlGpuOperationMode_t) {
        Err(Code::NOT_SUPPORTED)
    }
    fn nvmlDeviceGetAutoBoostedClocksEnabled(device |_|) -> (nvmlEnableState_t, nvmlEnableState_t) {
        Err(Code::NOT_SUPPORTED)
    }
    // This one is Windows's.
    fn nvmlDeviceGetDriverModel_v2(device |_|) -> (nvmlDriverModel_t, nvmlDriverModel_t) { Err(Code::NOT_SUPPORTED) }
    // An H200 does not have it.
    fn nvmlDeviceGetDramEncryptionMode(device |_|) -> (nvmlDramEncryptionInfo_t, nvmlDramEncryptionInfo_t) {
        Err(Code::NOT_SUPPORTED)
    }
    fn nvmlDeviceGetAddressingMode(device |_|) fills own: nvmlDeviceAddressingMode_t, 1 {
        own.value = 0;
        Ok(())
    }
    fn nvmlDeviceGetCapabilities(device |_|) fills own: nvmlDeviceCapabilities_t, 1 {
        own.capMask = 0;
        Ok(())
    }
    // Boards have them from Blackwell on; this one has been asked for none.
    fn nvmlDeviceWorkloadPowerProfileGetCurrentProfiles(
        device |gpu|
    ) fills own: nvmlWorkloadPowerProfileCurrentProfiles_t, 1 {
        if gpu.identity().architecture < Architecture::Blackwell {
            return Err(Code::NOT_SUPPORTED);
        }
        let none = nvmlMask255_t { mask: [0; 8] };
        (own.perfProfilesMask, own.requestedProfilesMask, own.enforcedProfilesMask) = (none, none, none);
        Ok(())
    }
}
