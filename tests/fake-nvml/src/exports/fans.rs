//! Fans. A board that the chassis cools has none.

use std::ffi::c_uint;

use nvml_wrapper_sys::bindings::{nvmlDevice_t, nvmlFanSpeedInfo_t, nvmlReturn_t};

use super::{one_value, version_of};
use crate::{
    call::{Gpu, device},
    code::{Code, Outcome},
    out::{items, put},
};

/// The first version of the structure.
const FAN_SPEED_INFO_V1: u32 = version_of::<nvmlFanSpeedInfo_t>(1);

one_value! {
    fn nvmlDeviceGetFanSpeed(c_uint) = |gpu| {
        check(gpu, 0)?;
        Ok(gpu.state().fan_percent)
    };
    fn nvmlDeviceGetNumFans(c_uint) = |gpu| {
        check(gpu, 0)?;
        Ok(gpu.identity().fans)
    };
}

/// Whether there is this fan.
fn check(gpu: &Gpu, fan: c_uint) -> Outcome {
    match gpu.identity().fans {
        0 => Err(Code::NOT_SUPPORTED),
        fans if fan >= fans => Err(Code::INVALID_ARGUMENT),
        _ => Ok(()),
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlDeviceGetFanSpeed_v2(handle: nvmlDevice_t, fan: c_uint, speed: *mut c_uint) -> nvmlReturn_t {
    device("nvmlDeviceGetFanSpeed_v2", handle, |gpu| {
        check(gpu, fan)?;
        // SAFETY: NVML's contract: the pointer is null or may be written.
        unsafe { put(speed, gpu.state().fan_percent) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlDeviceGetFanSpeedRPM(handle: nvmlDevice_t, info: *mut nvmlFanSpeedInfo_t) -> nvmlReturn_t {
    device("nvmlDeviceGetFanSpeedRPM", handle, |gpu| {
        // SAFETY: NVML's contract: the pointer is null or points at a structure with version and fan filled in.
        let [info] = unsafe { items(info, 1) }? else { return Err(Code::INVALID_ARGUMENT) };
        if info.version != FAN_SPEED_INFO_V1 {
            return Err(Code::ARGUMENT_VERSION_MISMATCH);
        }
        check(gpu, info.fan)?;
        info.speed = gpu.state().fan_rpm();
        Ok(())
    })
}
