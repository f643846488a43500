//! Memory errors.

use std::ffi::c_ulonglong;

use gpumon_probe::source::sim::EccErrors;
use nvml_wrapper_sys::bindings::{
    nvmlDevice_t, nvmlEccCounterType_enum_NVML_AGGREGATE_ECC as AGGREGATE,
    nvmlEccCounterType_enum_NVML_VOLATILE_ECC as VOLATILE, nvmlEccCounterType_t,
    nvmlMemoryErrorType_enum_NVML_MEMORY_ERROR_TYPE_CORRECTED as CORRECTED,
    nvmlMemoryErrorType_enum_NVML_MEMORY_ERROR_TYPE_UNCORRECTED as UNCORRECTED, nvmlMemoryErrorType_t,
    nvmlMemoryLocation_enum_NVML_MEMORY_LOCATION_COUNT as LOCATIONS,
    nvmlMemoryLocation_enum_NVML_MEMORY_LOCATION_DEVICE_MEMORY as DEVICE_MEMORY,
    nvmlMemoryLocation_enum_NVML_MEMORY_LOCATION_SRAM as SRAM, nvmlMemoryLocation_t, nvmlReturn_t,
};

use crate::{
    call::{Gpu, device},
    code::Code,
    out::put,
};

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlDeviceGetTotalEccErrors(
    handle: nvmlDevice_t,
    kind: nvmlMemoryErrorType_t,
    counter: nvmlEccCounterType_t,
    count: *mut c_ulonglong,
) -> nvmlReturn_t {
    device("nvmlDeviceGetTotalEccErrors", handle, |gpu| {
        let errors = of_counter(gpu, counter)?;
        // SAFETY: NVML's contract: the pointer is null or may be written.
        unsafe { put(count, of_kind(errors, kind)?) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlDeviceGetMemoryErrorCounter(
    handle: nvmlDevice_t,
    kind: nvmlMemoryErrorType_t,
    counter: nvmlEccCounterType_t,
    location: nvmlMemoryLocation_t,
    count: *mut c_ulonglong,
) -> nvmlReturn_t {
    device("nvmlDeviceGetMemoryErrorCounter", handle, |gpu| {
        let errors = of_counter(gpu, counter)?;
        let there = match location {
            DEVICE_MEMORY => errors.device_memory(),
            SRAM => errors.sram(),
            0..LOCATIONS => return Err(Code::NOT_SUPPORTED),
            _ => return Err(Code::INVALID_ARGUMENT),
        };
        // SAFETY: NVML's contract: the pointer is null or may be written.
        unsafe { put(count, of_kind(there, kind)?) }
    })
}

fn of_counter(gpu: &Gpu, counter: nvmlEccCounterType_t) -> Result<EccErrors, Code> {
    match counter {
        VOLATILE => Ok(gpu.wear().ecc_volatile),
        AGGREGATE => Ok(gpu.wear().ecc_aggregate),
        _ => Err(Code::INVALID_ARGUMENT),
    }
}

fn of_kind(errors: EccErrors, kind: nvmlMemoryErrorType_t) -> Result<u64, Code> {
    match kind {
        CORRECTED => Ok(errors.corrected),
        UNCORRECTED => Ok(errors.uncorrected),
        _ => Err(Code::INVALID_ARGUMENT),
    }
}
