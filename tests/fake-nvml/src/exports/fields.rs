//! Field values: many numbers with one call, each with an outcome of its own.

use std::ffi::c_int;

use gpumon_probe::model::now_ms;
use nvml_wrapper_sys::bindings::{
    field_id, nvmlDevice_t, nvmlFieldValue_t, nvmlReturn_t, nvmlValue_t,
    nvmlValueType_enum_NVML_VALUE_TYPE_UNSIGNED_INT as UNSIGNED_INT,
    nvmlValueType_enum_NVML_VALUE_TYPE_UNSIGNED_LONG_LONG as UNSIGNED_LONG_LONG, nvmlValueType_t,
};

use super::power::{millijoules, milliwatts};
use crate::{
    call::{Gpu, device},
    code::Code,
    out,
};

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlDeviceGetFieldValues(
    handle: nvmlDevice_t,
    count: c_int,
    values: *mut nvmlFieldValue_t,
) -> nvmlReturn_t {
    device("nvmlDeviceGetFieldValues", handle, |gpu| {
        let count = usize::try_from(count).map_err(|_| Code::INVALID_ARGUMENT)?;
        // SAFETY: NVML's contract: the pointer is null or points at so many values with their ids filled in.
        for value in unsafe { out::items(values, count) }? {
            value.timestamp = (now_ms() * 1000).cast_signed();
            value.latencyUsec = 0;
            match field(gpu, value.fieldId) {
                Some((kind, number)) => (value.valueType, value.value, value.nvmlReturn) = (kind, number, 0),
                None => value.nvmlReturn = Code::NOT_SUPPORTED.0,
            }
        }
        Ok(())
    })
}

/// The fields that the simulation knows.
fn field(gpu: &Gpu, id: u32) -> Option<(nvmlValueType_t, nvmlValue_t)> {
    let narrow = |number| Some((UNSIGNED_INT, nvmlValue_t { uiVal: number }));
    match id {
        field_id::NVML_FI_DEV_MEMORY_TEMP => narrow(gpu.state().memory_temperature_celsius.round() as u32),
        field_id::NVML_FI_DEV_POWER_AVERAGE => narrow(milliwatts(gpu.state().power_watts)),
        field_id::NVML_FI_DEV_POWER_INSTANT => narrow(milliwatts(gpu.state().power_instant_watts)),
        field_id::NVML_FI_DEV_TOTAL_ENERGY_CONSUMPTION => {
            Some((UNSIGNED_LONG_LONG, nvmlValue_t { ullVal: millijoules(gpu) }))
        }
        _ => None,
    }
}
