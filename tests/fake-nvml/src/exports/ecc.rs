//! Memory errors.

use std::ffi::c_ulonglong;

use gpumon_probe::vendor::sim::{Architecture, EccErrors};
use nvml_wrapper_sys::bindings::{
    nvmlDevice_t, nvmlEccCounterType_enum_NVML_AGGREGATE_ECC as AGGREGATE,
    nvmlEccCounterType_enum_NVML_VOLATILE_ECC as VOLATILE, nvmlEccCounterType_t,
    nvmlEccSramErrorStatus_t,
    nvmlMemoryErrorType_enum_NVML_MEMORY_ERROR_TYPE_CORRECTED as CORRECTED,
    nvmlMemoryErrorType_enum_NVML_MEMORY_ERROR_TYPE_UNCORRECTED as UNCORRECTED,
    nvmlMemoryErrorType_t, nvmlMemoryLocation_enum_NVML_MEMORY_LOCATION_COUNT as LOCATIONS,
    nvmlMemoryLocation_enum_NVML_MEMORY_LOCATION_DEVICE_MEMORY as DEVICE_MEMORY,
    nvmlMemoryLocation_enum_NVML_MEMORY_LOCATION_SRAM as SRAM, nvmlMemoryLocation_t, nvmlReturn_t,
};

use super::exports;
use crate::{
    call::{Gpu, part},
    code::Code,
    given,
    out::put,
};

exports! {
    fn nvmlDeviceGetTotalEccErrors(
        device |gpu|, kind: nvmlMemoryErrorType_t, counter: nvmlEccCounterType_t
    ) -> c_ulonglong {
        let errors = of_counter(gpu, counter)?;
        of_kind(errors, kind)
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlDeviceGetMemoryErrorCounter(
    handle: nvmlDevice_t,
    kind: nvmlMemoryErrorType_t,
    counter: nvmlEccCounterType_t,
    location: nvmlMemoryLocation_t,
    count: *mut c_ulonglong,
) -> nvmlReturn_t {
    part("nvmlDeviceGetMemoryErrorCounter", handle, |gpu| {
        if let Some(answer) = given::device(
            "nvmlDeviceGetMemoryErrorCounter",
            handle,
            &[kind, counter, location],
        ) {
            // SAFETY: NVML's contract: the pointer is null or may be written.
            return unsafe { put(count, answer.number()?.cast_unsigned()) };
        }
        // A MIG device counts what the caches of its own multiprocessors could not correct.
        if gpu.instance.is_some() {
            let own = (kind, counter, location) == (UNCORRECTED, VOLATILE, SRAM);
            // SAFETY: NVML's contract: the pointer is null or may be written.
            return if own {
                unsafe { put(count, 0) }
            } else {
                Err(Code::NOT_SUPPORTED)
            };
        }
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

exports! {
    // Boards count them by where in the chip they happened from Ampere on; here all were in the caches.
    fn nvmlDeviceGetSramEccErrorStatus(device |gpu|) fills own: nvmlEccSramErrorStatus_t, 1 {
        if gpu.identity().architecture < Architecture::Ampere {
            return Err(Code::NOT_SUPPORTED);
        }
        let (lifetime, now) = (of_counter(gpu, AGGREGATE)?.sram(), of_counter(gpu, VOLATILE)?.sram());
        *own = nvmlEccSramErrorStatus_t {
            version: own.version,
            aggregateUncParity: 0,
            aggregateUncSecDed: lifetime.uncorrected,
            aggregateCor: lifetime.corrected,
            volatileUncParity: 0,
            volatileUncSecDed: now.uncorrected,
            volatileCor: now.corrected,
            aggregateUncBucketL2: lifetime.uncorrected,
            aggregateUncBucketSm: 0,
            aggregateUncBucketPcie: 0,
            aggregateUncBucketMcu: 0,
            aggregateUncBucketOther: 0,
            bThresholdExceeded: 0,
        };
        Ok(())
    }
}

fn of_counter(gpu: &Gpu, counter: nvmlEccCounterType_t) -> Result<EccErrors, Code> {
    if !gpu.identity().ecc {
        return Err(Code::NOT_SUPPORTED);
    }
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
