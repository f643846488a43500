//! The NVML calls that nvml-wrapper lacks or makes dearer than they need be. The only unsafe code of the probe.

use nvml_wrapper::{
    Device, Nvml,
    error::{NvmlError, nvml_sym, nvml_try},
};
use nvml_wrapper_sys::bindings::{nvmlMemory_t, nvmlProcessUtilizationSample_t};

/// As many samples as the driver keeps on an idle H200. With more processes than that it says how many it needs.
const UTILIZATION_SAMPLES: usize = 1024;

/// Device memory as drivers before 510 tell it, with the driver's own share counted as used.
pub(super) fn memory_info_v1(nvml: &Nvml, device: &Device<'_>) -> Result<nvmlMemory_t, NvmlError> {
    let call = nvml_sym(nvml.lib().nvmlDeviceGetMemoryInfo.as_ref())?;
    let mut memory = nvmlMemory_t { total: 0, free: 0, used: 0 };
    // SAFETY: the handle comes from the same library and is valid while `device` lives; `memory` outlives the call.
    nvml_try(unsafe { call(device.handle(), &raw mut memory) })?;
    Ok(memory)
}

/// `nvmlDeviceGetProcessUtilization` in one call of about 2 ms, where the wrapper asks for the count first and pays
/// twice. Empty where nothing ran since `last_seen_us` (microseconds since the epoch).
pub(super) fn process_utilization(
    nvml: &Nvml,
    device: &Device<'_>,
    last_seen_us: u64,
) -> Result<Vec<nvmlProcessUtilizationSample_t>, NvmlError> {
    let call = nvml_sym(nvml.lib().nvmlDeviceGetProcessUtilization.as_ref())?;
    let empty = nvmlProcessUtilizationSample_t { pid: 0, timeStamp: 0, smUtil: 0, memUtil: 0, encUtil: 0, decUtil: 0 };
    let mut samples = vec![empty; UTILIZATION_SAMPLES];
    loop {
        let room = samples.len();
        let mut count = room as u32;
        // SAFETY: `count` says how many elements `samples` has, and the driver writes no more than that.
        let result = nvml_try(unsafe { call(device.handle(), samples.as_mut_ptr(), &raw mut count, last_seen_us) });
        match result {
            Ok(()) => {
                samples.truncate(count as usize);
                return Ok(samples);
            }
            Err(NvmlError::InsufficientSize(_)) if count as usize > room => samples.resize(count as usize, empty),
            Err(NvmlError::NotFound) => return Ok(Vec::new()),
            Err(error) => return Err(error),
        }
    }
}
