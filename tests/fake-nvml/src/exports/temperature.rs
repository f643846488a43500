//! Temperatures and their limits.

use std::ffi::c_uint;

use gpumon_probe::vendor::sim::GpuIdentity;
use nvml_wrapper_sys::bindings::{
    nvmlDevice_t, nvmlMarginTemperature_t, nvmlReturn_t, nvmlTemperature_t,
    nvmlTemperatureSensors_enum_NVML_TEMPERATURE_GPU, nvmlTemperatureSensors_t, nvmlTemperatureThresholds_t,
};

use super::version_of;
use crate::{
    call::{Gpu, device},
    code::{Code, Outcome},
    out::{self, put},
};

/// The first versions of the structures.
const TEMPERATURE_V1: u32 = version_of::<nvmlTemperature_t>(1);
const MARGIN_V1: u32 = version_of::<nvmlMarginTemperature_t>(1);

/// Whether the board tells how far it is from its limits.
pub(super) fn check_margin(gpu: &Gpu) -> Outcome {
    if gpu.identity().has_margin() { Ok(()) } else { Err(Code::NOT_SUPPORTED) }
}

/// What the chip's sensor shows, in whole degrees.
fn chip(gpu: &Gpu, sensor: nvmlTemperatureSensors_t) -> Result<c_uint, Code> {
    if sensor == nvmlTemperatureSensors_enum_NVML_TEMPERATURE_GPU {
        Ok(gpu.state().temperature_celsius.round() as c_uint)
    } else {
        Err(Code::INVALID_ARGUMENT)
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlDeviceGetTemperature(
    handle: nvmlDevice_t,
    sensor: nvmlTemperatureSensors_t,
    celsius: *mut c_uint,
) -> nvmlReturn_t {
    // SAFETY: NVML's contract: the pointer is null or may be written.
    device("nvmlDeviceGetTemperature", handle, |gpu| unsafe { put(celsius, chip(gpu, sensor)?) })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlDeviceGetTemperatureV(
    handle: nvmlDevice_t,
    temperature: *mut nvmlTemperature_t,
) -> nvmlReturn_t {
    device("nvmlDeviceGetTemperatureV", handle, |gpu| {
        // SAFETY: NVML's contract: the pointer is null or points at a structure with version and sensor filled in.
        let [temperature] = unsafe { out::items(temperature, 1) }? else { return Err(Code::INVALID_ARGUMENT) };
        if temperature.version != TEMPERATURE_V1 {
            return Err(Code::ARGUMENT_VERSION_MISMATCH);
        }
        temperature.temperature = chip(gpu, temperature.sensorType)?.cast_signed();
        Ok(())
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlDeviceGetTemperatureThreshold(
    handle: nvmlDevice_t,
    threshold: nvmlTemperatureThresholds_t,
    celsius: *mut c_uint,
) -> nvmlReturn_t {
    device("nvmlDeviceGetTemperatureThreshold", handle, |_| {
        let limit = match threshold {
            0 => GpuIdentity::SHUTDOWN_CELSIUS,
            1 => GpuIdentity::SLOWDOWN_CELSIUS,
            2 => GpuIdentity::MEMORY_MAX_CELSIUS,
            3 => GpuIdentity::GPU_MAX_CELSIUS,
            4..=7 => return Err(Code::NOT_SUPPORTED),
            _ => return Err(Code::INVALID_ARGUMENT),
        };
        // SAFETY: NVML's contract: the pointer is null or may be written.
        unsafe { put(celsius, limit) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlDeviceGetMarginTemperature(
    handle: nvmlDevice_t,
    margin: *mut nvmlMarginTemperature_t,
) -> nvmlReturn_t {
    device("nvmlDeviceGetMarginTemperature", handle, |gpu| {
        // SAFETY: NVML's contract: the pointer is null or points at a structure with its version filled in.
        let [margin] = unsafe { out::items(margin, 1) }? else { return Err(Code::INVALID_ARGUMENT) };
        if margin.version != MARGIN_V1 {
            return Err(Code::ARGUMENT_VERSION_MISMATCH);
        }
        check_margin(gpu)?;
        margin.marginTemperature = gpu.state().margin_celsius.round() as i32;
        Ok(())
    })
}
