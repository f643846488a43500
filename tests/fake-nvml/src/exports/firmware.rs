//! What runs on a board: its firmware, and the memory in which the board describes itself.

use std::ffi::{c_char, c_uint, c_ulong, c_ulonglong};

use gpumon_probe::vendor::sim::Architecture;
use nvml_wrapper_sys::bindings::{
    nvmlDevice_t, nvmlInforomObject_enum_NVML_INFOROM_COUNT as OBJECTS,
    nvmlInforomObject_enum_NVML_INFOROM_ECC as ECC, nvmlInforomObject_enum_NVML_INFOROM_OEM as OEM,
    nvmlInforomObject_t, nvmlReturn_t,
};

use super::{exports, system::DRIVER};
use crate::{
    call::{Gpu, device},
    code::{Code, Outcome},
    given,
    out::put_text,
};

/// The room that a caller has for the version of the GSP's firmware.
const GSP_VERSION_ROOM: c_uint = 0x40;

exports! {
    fn nvmlDeviceGetInforomImageVersion(device |gpu|) -> str {
        Ok(if gpu.identity().geforce { "G001.0000.03.03" } else { "G520.0282.02.02" })
    }
    fn nvmlDeviceGetGspFirmwareMode(device |gpu|) -> (c_uint, c_uint) { check_gsp(gpu).map(|()| (1, 1)) }
    // Half a year.
    fn nvmlDeviceGetBBXTimeData_v1(device |gpu|) -> c_uint {
        if gpu.identity().geforce { Err(Code::NOT_SUPPORTED) } else { Ok(15_811_200) }
    }
    // The black box has not been written since the driver was loaded.
    fn nvmlDeviceGetLastBBXFlushTime(device |_|) -> (c_ulonglong, c_ulong) { Err(Code::NOT_READY) }
}

/// Chips have this processor from Turing on.
fn check_gsp(gpu: &Gpu) -> Outcome {
    if gpu.identity().architecture >= Architecture::Turing {
        Ok(())
    } else {
        Err(Code::NOT_SUPPORTED)
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlDeviceGetGspFirmwareVersion(
    handle: nvmlDevice_t,
    text: *mut c_char,
) -> nvmlReturn_t {
    device("nvmlDeviceGetGspFirmwareVersion", handle, |gpu| {
        let answer = given::device("nvmlDeviceGetGspFirmwareVersion", handle, &[]);
        // It comes with the driver.
        let version = given::text_or(answer, || check_gsp(gpu).map(|()| DRIVER))?;
        // SAFETY: NVML's contract: the pointer is null or has this much room.
        unsafe { put_text(text, GSP_VERSION_ROOM, &version) }
    })
}

exports! {
    fn nvmlDeviceGetInforomVersion(device |gpu|, object: nvmlInforomObject_t) -> str {
        Ok(match object {
            OEM => "2.1",
            ECC if gpu.identity().ecc => "7.16",
            OBJECTS.. => return Err(Code::INVALID_ARGUMENT),
            _ => return Err(Code::NOT_SUPPORTED),
        })
    }
}

#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceValidateInforom(handle: nvmlDevice_t) -> nvmlReturn_t {
    device("nvmlDeviceValidateInforom", handle, |_| Ok(()))
}
