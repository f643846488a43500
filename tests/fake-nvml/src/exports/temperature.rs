//! Temperatures and their limits.

use std::ffi::c_uint;

use gpumon_probe::vendor::sim::GpuIdentity;
use nvml_wrapper_sys::bindings::{
    nvmlMarginTemperature_t, nvmlTemperature_t, nvmlTemperatureSensors_enum_NVML_TEMPERATURE_GPU,
    nvmlTemperatureSensors_t, nvmlTemperatureThresholds_t,
};

use super::exports;
use crate::{
    call::Gpu,
    code::{Code, Outcome},
};

/// Whether the board tells how far it is from its limits.
pub(super) fn check_margin(gpu: &Gpu) -> Outcome {
    if gpu.identity().has_margin() {
        Ok(())
    } else {
        Err(Code::NOT_SUPPORTED)
    }
}

/// What the chip's sensor shows, in whole degrees.
fn chip(gpu: &Gpu, sensor: nvmlTemperatureSensors_t) -> Result<c_uint, Code> {
    if sensor == nvmlTemperatureSensors_enum_NVML_TEMPERATURE_GPU {
        Ok(gpu.state().temperature_celsius.round() as c_uint)
    } else {
        Err(Code::INVALID_ARGUMENT)
    }
}

exports! {
    fn nvmlDeviceGetTemperature(device |gpu|, sensor: nvmlTemperatureSensors_t) -> c_uint { chip(gpu, sensor) }
    fn nvmlDeviceGetTemperatureV(device |gpu|) fills temperature: nvmlTemperature_t, 1 {
        temperature.temperature = chip(gpu, temperature.sensorType)?.cast_signed();
        Ok(())
    }
    fn nvmlDeviceGetTemperatureThreshold(device |_|, threshold: nvmlTemperatureThresholds_t) -> c_uint {
        Ok(match threshold {
            0 => GpuIdentity::SHUTDOWN_CELSIUS,
            1 => GpuIdentity::SLOWDOWN_CELSIUS,
            2 => GpuIdentity::MEMORY_MAX_CELSIUS,
            3 => GpuIdentity::GPU_MAX_CELSIUS,
            4..=7 => return Err(Code::NOT_SUPPORTED),
            _ => return Err(Code::INVALID_ARGUMENT),
        })
    }
    fn nvmlDeviceGetMarginTemperature(device |gpu|) fills margin: nvmlMarginTemperature_t, 1 {
        check_margin(gpu)?;
        margin.marginTemperature = gpu.state().margin_celsius.round() as i32;
        Ok(())
    }
}
