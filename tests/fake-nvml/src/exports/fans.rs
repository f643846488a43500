//! Fans. A board that the chassis cools has none.

use std::ffi::c_uint;

use nvml_wrapper_sys::bindings::nvmlFanSpeedInfo_t;

use super::exports;
use crate::{
    call::Gpu,
    code::{Code, Outcome},
};

exports! {
    fn nvmlDeviceGetFanSpeed(device |gpu|) -> c_uint {
        check(gpu, 0)?;
        Ok(gpu.state().fan_percent)
    }
    fn nvmlDeviceGetNumFans(device |gpu|) -> c_uint {
        check(gpu, 0)?;
        Ok(gpu.identity().fans)
    }
}

fn check(gpu: &Gpu, fan: c_uint) -> Outcome {
    match gpu.identity().fans {
        0 => Err(Code::NOT_SUPPORTED),
        fans if fan >= fans => Err(Code::INVALID_ARGUMENT),
        _ => Ok(()),
    }
}

exports! {
    fn nvmlDeviceGetFanSpeed_v2(device |gpu|, fan: c_uint) -> c_uint {
        check(gpu, fan)?;
        Ok(gpu.state().fan_percent)
    }
    fn nvmlDeviceGetFanSpeedRPM(device |gpu|) fills info: nvmlFanSpeedInfo_t, 1 {
        check(gpu, info.fan)?;
        info.speed = gpu.state().fan_rpm();
        Ok(())
    }
}
