//! Modes: how a board is set, and which settings it does not have.

use gpumon_probe::vendor::sim::Architecture;
use nvml_wrapper_sys::bindings::{
    nvmlComputeMode_enum_NVML_COMPUTEMODE_DEFAULT, nvmlComputeMode_t, nvmlDeviceAddressingMode_t,
    nvmlDeviceCapabilities_t, nvmlDramEncryptionInfo_t, nvmlDriverModel_t,
    nvmlEnableState_enum_NVML_FEATURE_DISABLED as DISABLED, nvmlEnableState_enum_NVML_FEATURE_ENABLED as ENABLED,
    nvmlEnableState_t, nvmlGpuOperationMode_t, nvmlMask255_t, nvmlWorkloadPowerProfileCurrentProfiles_t,
};

use super::{one_value, two_values, versioned};
use crate::code::Code;

one_value! {
    fn nvmlDeviceGetPersistenceMode(nvmlEnableState_t) = |gpu| Ok(if gpu.identity().persistence { ENABLED } else { DISABLED });
    fn nvmlDeviceGetComputeMode(nvmlComputeMode_t) = |_| Ok(nvmlComputeMode_enum_NVML_COMPUTEMODE_DEFAULT);
    fn nvmlDeviceGetDisplayActive(nvmlEnableState_t) = |_| Ok(DISABLED);
    // A driver of the 580 branch says so of an H200, which has no plug for one.
    fn nvmlDeviceGetDisplayMode(nvmlEnableState_t) = |_| Ok(ENABLED);
}

two_values! {
    fn nvmlDeviceGetEccMode(nvmlEnableState_t, nvmlEnableState_t) = |gpu| {
        if gpu.identity().ecc { Ok((ENABLED, ENABLED)) } else { Err(Code::NOT_SUPPORTED) }
    };
    // Boards had it in the days of Kepler.
    fn nvmlDeviceGetGpuOperationMode(nvmlGpuOperationMode_t, nvmlGpuOperationMode_t) = |_| Err(Code::NOT_SUPPORTED);
    fn nvmlDeviceGetAutoBoostedClocksEnabled(nvmlEnableState_t, nvmlEnableState_t) = |_| Err(Code::NOT_SUPPORTED);
    // This one is Windows's.
    fn nvmlDeviceGetDriverModel_v2(nvmlDriverModel_t, nvmlDriverModel_t) = |_| Err(Code::NOT_SUPPORTED);
    // An H200 does not have it.
    fn nvmlDeviceGetDramEncryptionMode(nvmlDramEncryptionInfo_t, nvmlDramEncryptionInfo_t) =
        |_| Err(Code::NOT_SUPPORTED);
}

versioned! {
    fn nvmlDeviceGetAddressingMode(nvmlDeviceAddressingMode_t, 1) = |_, own| {
        own.value = 0;
        Ok(())
    };
    fn nvmlDeviceGetCapabilities(nvmlDeviceCapabilities_t, 1) = |_, own| {
        own.capMask = 0;
        Ok(())
    };
    // Boards have them from Blackwell on; this one has been asked for none.
    fn nvmlDeviceWorkloadPowerProfileGetCurrentProfiles(nvmlWorkloadPowerProfileCurrentProfiles_t, 1) = |gpu, own| {
        if gpu.identity().architecture < Architecture::Blackwell {
            return Err(Code::NOT_SUPPORTED);
        }
        let none = nvmlMask255_t { mask: [0; 8] };
        (own.perfProfilesMask, own.requestedProfilesMask, own.enforcedProfilesMask) = (none, none, none);
        Ok(())
    };
}
