//! Calls that fill in one small structure.

use std::mem::size_of;

use nvml_wrapper::{
    Device, Nvml,
    error::{NvmlError, nvml_sym, nvml_try},
};
use nvml_wrapper_sys::bindings::{
    NVML_CC_SYSTEM_DEVTOOLS_MODE_ON, NVML_CC_SYSTEM_FEATURE_ENABLED, nvmlC2cModeInfo_v1_t,
    nvmlConfComputeSystemState_t, nvmlDevice_t, nvmlGpuFabricInfo_v2_t, nvmlGpuFabricInfo_v3_t,
    nvmlIntNvLinkDeviceType_t, nvmlMarginTemperature_v1_t, nvmlReturn_t, nvmlRowRemapperHistogramValues_t,
};

/// Banks of memory by how many spare rows they have left.
pub(in super::super) type RowHistogram = nvmlRowRemapperHistogramValues_t;

/// `NVML_STRUCT_VERSION`: the size of a structure and the version of its layout.
const fn version<T>(version: u32) -> u32 {
    size_of::<T>() as u32 | (version << 24)
}

/// A function that gives a utilisation and the period over which it was taken.
type UtilizationCall = unsafe extern "C" fn(nvmlDevice_t, *mut u32, *mut u32) -> nvmlReturn_t;

/// `nvmlDeviceGetJpgUtilization`, in percent.
pub(in super::super) fn jpeg_utilization(device: &Device<'_>) -> Result<u32, NvmlError> {
    utilization(device, *nvml_sym(device.nvml().lib().nvmlDeviceGetJpgUtilization.as_ref())?)
}

/// `nvmlDeviceGetOfaUtilization`, in percent.
pub(in super::super) fn ofa_utilization(device: &Device<'_>) -> Result<u32, NvmlError> {
    utilization(device, *nvml_sym(device.nvml().lib().nvmlDeviceGetOfaUtilization.as_ref())?)
}

fn utilization(device: &Device<'_>, call: UtilizationCall) -> Result<u32, NvmlError> {
    let (mut percent, mut period_us) = (0, 0);
    // SAFETY: the handle is valid while `device` lives; both numbers outlive the call.
    nvml_try(unsafe { call(device.handle(), &raw mut percent, &raw mut period_us) })?;
    Ok(percent)
}

/// `nvmlDeviceGetMarginTemperature`: degrees that the chip is below the temperature at which its clocks are lowered.
pub(in super::super) fn margin_celsius(device: &Device<'_>) -> Result<i32, NvmlError> {
    let call = nvml_sym(device.nvml().lib().nvmlDeviceGetMarginTemperature.as_ref())?;
    let mut margin =
        nvmlMarginTemperature_v1_t { version: version::<nvmlMarginTemperature_v1_t>(1), marginTemperature: 0 };
    // SAFETY: the handle is valid while `device` lives; the structure says which version it is and outlives the call.
    nvml_try(unsafe { call(device.handle(), &raw mut margin) })?;
    Ok(margin.marginTemperature)
}

/// `nvmlDeviceGetRemappedRows`: rows after corrected and after uncorrected errors, whether one waits for a reset, and
/// whether one could not be replaced.
pub(in super::super) fn remapped_rows(device: &Device<'_>) -> Result<(u32, u32, bool, bool), NvmlError> {
    let call = nvml_sym(device.nvml().lib().nvmlDeviceGetRemappedRows.as_ref())?;
    let (mut corrected, mut uncorrected, mut pending, mut failed) = (0, 0, 0, 0);
    // SAFETY: the handle is valid while `device` lives; all four numbers outlive the call.
    nvml_try(unsafe {
        call(device.handle(), &raw mut corrected, &raw mut uncorrected, &raw mut pending, &raw mut failed)
    })?;
    Ok((corrected, uncorrected, pending != 0, failed != 0))
}

/// `nvmlDeviceGetRowRemapperHistogram`.
pub(in super::super) fn row_histogram(device: &Device<'_>) -> Result<RowHistogram, NvmlError> {
    let call = nvml_sym(device.nvml().lib().nvmlDeviceGetRowRemapperHistogram.as_ref())?;
    let mut histogram = RowHistogram { max: 0, high: 0, partial: 0, low: 0, none: 0 };
    // SAFETY: the handle is valid while `device` lives; the structure outlives the call.
    nvml_try(unsafe { call(device.handle(), &raw mut histogram) })?;
    Ok(histogram)
}

/// `nvmlDeviceGetNvLinkRemoteDeviceType`, which the wrapper always answers with "unknown".
pub(in super::super) fn nvlink_remote(device: &Device<'_>, link: u32) -> Result<nvmlIntNvLinkDeviceType_t, NvmlError> {
    let call = nvml_sym(device.nvml().lib().nvmlDeviceGetNvLinkRemoteDeviceType.as_ref())?;
    let mut kind = 0;
    // SAFETY: the handle is valid while `device` lives; the number outlives the call.
    nvml_try(unsafe { call(device.handle(), link, &raw mut kind) })?;
    Ok(kind)
}

/// `nvmlDeviceGetTopologyCommonAncestor` as an `nvmlGpuTopologyLevel_t`. The wrapper would take the other device away.
pub(in super::super) fn common_ancestor(a: &Device<'_>, b: &Device<'_>) -> Result<u32, NvmlError> {
    let call = nvml_sym(a.nvml().lib().nvmlDeviceGetTopologyCommonAncestor.as_ref())?;
    let mut level = 0;
    // SAFETY: both handles are valid while the devices live; the number outlives the call.
    nvml_try(unsafe { call(a.handle(), b.handle(), &raw mut level) })?;
    Ok(level)
}

/// `nvmlDeviceGetGpuFabricInfoV`, in version 3 or, of an older driver, version 2.
pub(in super::super) fn fabric(device: &Device<'_>) -> Result<nvmlGpuFabricInfo_v3_t, NvmlError> {
    let call = nvml_sym(device.nvml().lib().nvmlDeviceGetGpuFabricInfoV.as_ref())?;
    let ask = |version| {
        let mut info = nvmlGpuFabricInfo_v3_t {
            version,
            clusterUuid: [0; 16],
            status: 0,
            cliqueId: 0,
            state: 0,
            healthMask: 0,
            healthSummary: 0,
        };
        // SAFETY: the handle is valid while `device` lives. The structure is of version 3, of which version 2 is the
        // beginning; the driver writes the version that the first field names.
        nvml_try(unsafe { call(device.handle(), &raw mut info) }).map(|()| info)
    };
    ask(version::<nvmlGpuFabricInfo_v3_t>(3)).or_else(|error| match error {
        // NVML_ERROR_ARGUMENT_VERSION_MISMATCH, for which the wrapper has no name.
        NvmlError::UnexpectedVariant(25) => ask(version::<nvmlGpuFabricInfo_v2_t>(2)),
        error => Err(error),
    })
}

/// `nvmlDeviceGetC2cModeInfoV`: whether the coherent link to a Grace CPU is on.
pub(in super::super) fn c2c_enabled(device: &Device<'_>) -> Result<bool, NvmlError> {
    let call = nvml_sym(device.nvml().lib().nvmlDeviceGetC2cModeInfoV.as_ref())?;
    let mut info = nvmlC2cModeInfo_v1_t { isC2cEnabled: 0 };
    // SAFETY: the handle is valid while `device` lives; the structure outlives the call.
    nvml_try(unsafe { call(device.handle(), &raw mut info) })?;
    Ok(info.isC2cEnabled != 0)
}

/// `nvmlSystemGetConfComputeState`: whether confidential computing is on, and whether it is in development mode.
pub(in super::super) fn confidential_compute(nvml: &Nvml) -> Result<(bool, bool), NvmlError> {
    let call = nvml_sym(nvml.lib().nvmlSystemGetConfComputeState.as_ref())?;
    let mut state = nvmlConfComputeSystemState_t { environment: 0, ccFeature: 0, devToolsMode: 0 };
    // SAFETY: the structure outlives the call.
    nvml_try(unsafe { call(&raw mut state) })?;
    Ok((state.ccFeature == NVML_CC_SYSTEM_FEATURE_ENABLED, state.devToolsMode == NVML_CC_SYSTEM_DEVTOOLS_MODE_ON))
}

/// `nvmlDeviceGetGpuInstanceId` and `nvmlDeviceGetComputeInstanceId` of a MIG device.
pub(in super::super) fn mig_instance(device: &Device<'_>) -> Result<(u32, u32), NvmlError> {
    let lib = device.nvml().lib();
    let gpu_instance = nvml_sym(lib.nvmlDeviceGetGpuInstanceId.as_ref())?;
    let compute_instance = nvml_sym(lib.nvmlDeviceGetComputeInstanceId.as_ref())?;
    let (mut gpu, mut compute) = (0, 0);
    // SAFETY: the handle is valid while `device` lives; both numbers outlive the calls.
    nvml_try(unsafe { gpu_instance(device.handle(), &raw mut gpu) })?;
    // SAFETY: as above.
    nvml_try(unsafe { compute_instance(device.handle(), &raw mut compute) })?;
    Ok((gpu, compute))
}
