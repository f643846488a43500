//! What the calls fill in, with the versions of those that have one.

use std::ffi::c_char;

use nvml_wrapper_sys::bindings::{
    nvmlAccountingStats_t, nvmlBridgeChipHierarchy_t, nvmlC2cModeInfo_v1_t, nvmlComputeInstance_t,
    nvmlComputeInstanceInfo_t, nvmlComputeInstancePlacement_t, nvmlComputeInstanceProfileInfo_t,
    nvmlComputeInstanceProfileInfo_v2_t, nvmlConfComputeGetKeyRotationThresholdInfo_t, nvmlConfComputeMemSizeInfo_t,
    nvmlConfComputeSystemCaps_t, nvmlConfComputeSystemState_t, nvmlDevice_t, nvmlDeviceAddressingMode_v1_t,
    nvmlDeviceAttributes_t, nvmlDeviceCapabilities_v1_t, nvmlDramEncryptionInfo_v1_t, nvmlEccSramErrorStatus_v1_t,
    nvmlEncoderSessionInfo_t, nvmlExcludedDeviceInfo_t, nvmlFBCSessionInfo_t, nvmlFBCStats_t, nvmlGpmMetricsGet_t,
    nvmlGpmSupport_t, nvmlGpuFabricInfo_v3_t, nvmlGpuInstance_t, nvmlGpuInstanceInfo_t, nvmlGpuInstancePlacement_t,
    nvmlGpuInstanceProfileInfo_t, nvmlGpuInstanceProfileInfo_v2_t, nvmlMarginTemperature_v1_t, nvmlMemory_t,
    nvmlNvLinkInfo_v2_t, nvmlPciInfo_t, nvmlPciInfoExt_v1_t, nvmlPdi_v1_t, nvmlPlatformInfo_v2_t,
    nvmlProcessUtilizationInfo_v1_t, nvmlProcessUtilizationSample_t, nvmlRepairStatus_v1_t,
    nvmlRowRemapperHistogramValues_t, nvmlSample_t, nvmlSystemConfComputeSettings_t, nvmlVgpuHeterogeneousMode_v1_t,
    nvmlViolationTime_t, nvmlWorkloadPowerProfileCurrentProfiles_v1_t,
};

use super::library::Plain;

/// `nvmlRemappedRowsInfo_v2_t`, which the bindings lack.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub(in super::super) struct RemappedRowsInfo {
    pub(in super::super) correctable: u32,
    pub(in super::super) inactive_correctable: u32,
    pub(in super::super) uncorrectable: u32,
    pub(in super::super) inactive_uncorrectable: u32,
    pub(in super::super) pending: u32,
    pub(in super::super) failed: u32,
}

/// `nvmlUnrepairableMemoryStatus_v1_t`, which the bindings lack: one number, and room in case it grows.
pub(in super::super) type UnrepairableMemory = [u32; 4];

/// `nvmlHostname_v1_t`, which the bindings lack.
pub(in super::super) type Hostname = [c_char; 64];

/// The text of functions that are not told how much room there is, which is this much in `nvml.h`.
pub(in super::super) type ShortText = [c_char; 0x40];

macro_rules! plain {
    ($($type:ty $(= $version:literal)?;)*) => {$(
        // SAFETY: it is made of numbers and pointers, and begins with its version where there is one.
        unsafe impl Plain for $type {
            $(const VERSION: Option<u32> = Some($version);)?
        }
    )*};
}

plain! {
    i32;
    u32;
    u64;
    nvmlDevice_t;
    ShortText;
    UnrepairableMemory;
    RemappedRowsInfo;
    nvmlAccountingStats_t;
    nvmlBridgeChipHierarchy_t;
    nvmlC2cModeInfo_v1_t;
    nvmlComputeInstance_t;
    nvmlComputeInstanceInfo_t;
    nvmlComputeInstancePlacement_t;
    nvmlComputeInstanceProfileInfo_t;
    nvmlComputeInstanceProfileInfo_v2_t = 2;
    nvmlConfComputeGetKeyRotationThresholdInfo_t = 1;
    nvmlConfComputeMemSizeInfo_t;
    nvmlConfComputeSystemCaps_t;
    nvmlConfComputeSystemState_t;
    nvmlDeviceAddressingMode_v1_t = 1;
    nvmlDeviceAttributes_t;
    nvmlDeviceCapabilities_v1_t = 1;
    nvmlDramEncryptionInfo_v1_t = 1;
    nvmlEccSramErrorStatus_v1_t = 1;
    nvmlEncoderSessionInfo_t;
    nvmlExcludedDeviceInfo_t;
    nvmlFBCSessionInfo_t;
    nvmlFBCStats_t;
    nvmlGpmMetricsGet_t;
    nvmlGpmSupport_t;
    nvmlGpuFabricInfo_v3_t = 3;
    nvmlGpuInstance_t;
    nvmlGpuInstanceInfo_t;
    nvmlGpuInstancePlacement_t;
    nvmlGpuInstanceProfileInfo_t;
    nvmlGpuInstanceProfileInfo_v2_t = 2;
    nvmlMarginTemperature_v1_t = 1;
    nvmlMemory_t;
    nvmlNvLinkInfo_v2_t = 2;
    nvmlPciInfo_t;
    nvmlPciInfoExt_v1_t = 1;
    nvmlPdi_v1_t = 1;
    nvmlPlatformInfo_v2_t = 2;
    nvmlProcessUtilizationInfo_v1_t;
    nvmlProcessUtilizationSample_t;
    nvmlRepairStatus_v1_t = 1;
    nvmlRowRemapperHistogramValues_t;
    nvmlSample_t;
    nvmlSystemConfComputeSettings_t = 1;
    nvmlVgpuHeterogeneousMode_v1_t = 1;
    nvmlViolationTime_t;
    nvmlWorkloadPowerProfileCurrentProfiles_v1_t = 1;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vendor::nvml::backend::raw::library::version_of;

    /// The versions with which a driver of the 580 branch was seen to be asked.
    #[test]
    fn structures_have_the_size_that_the_driver_expects() {
        let of = |version: u32, size: u32| version << 24 | size;
        assert_eq!(version_of::<nvmlPdi_v1_t>(1), of(1, 0x10));
        assert_eq!(version_of::<nvmlPciInfoExt_v1_t>(1), of(1, 0x40));
        assert_eq!(version_of::<nvmlPlatformInfo_v2_t>(2), of(2, 0x2c));
        assert_eq!(version_of::<nvmlEccSramErrorStatus_v1_t>(1), of(1, 0x68));
        assert_eq!(version_of::<nvmlRepairStatus_v1_t>(1), of(1, 0x0c));
        assert_eq!(version_of::<nvmlNvLinkInfo_v2_t>(2), of(2, 0x64c));
        assert_eq!(version_of::<nvmlWorkloadPowerProfileCurrentProfiles_v1_t>(1), of(1, 0x64));
        assert_eq!(version_of::<nvmlGpuFabricInfo_v3_t>(3), of(3, 0x28));
        assert_eq!(version_of::<nvmlDramEncryptionInfo_v1_t>(1), of(1, 0x08));
    }
}
