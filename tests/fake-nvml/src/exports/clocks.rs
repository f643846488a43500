//! Clocks, and what holds them down.

use std::ffi::{c_uint, c_ulonglong};

use gpumon_probe::{
    model::ThrottleReason,
    vendor::sim::{MAX_SM_MHZ, MAX_VIDEO_MHZ, MEMORY_MHZ},
};
use nvml_wrapper_sys::bindings::{
    nvmlClockId_t, nvmlClockType_enum_NVML_CLOCK_GRAPHICS, nvmlClockType_enum_NVML_CLOCK_MEM,
    nvmlClockType_enum_NVML_CLOCK_SM, nvmlClockType_enum_NVML_CLOCK_VIDEO, nvmlClockType_t, nvmlDevice_t,
    nvmlPstates_t, nvmlReturn_t,
};

use super::one_value;
use crate::{
    call::{Gpu, device},
    code::Code,
    out::{put, put_list},
};

/// All nine reasons of [`bit`].
const EVERY_REASON: c_ulonglong = 0x1FF;

one_value! {
    fn nvmlDeviceGetPerformanceState(nvmlPstates_t) = |gpu| Ok(gpu.state().performance_state.into());
    fn nvmlDeviceGetCurrentClocksEventReasons(c_ulonglong) = |gpu| Ok(reasons(gpu));
    fn nvmlDeviceGetCurrentClocksThrottleReasons(c_ulonglong) = |gpu| Ok(reasons(gpu));
    fn nvmlDeviceGetSupportedClocksEventReasons(c_ulonglong) = |_| Ok(EVERY_REASON);
    fn nvmlDeviceGetSupportedClocksThrottleReasons(c_ulonglong) = |_| Ok(EVERY_REASON);
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlDeviceGetClockInfo(
    handle: nvmlDevice_t,
    domain: nvmlClockType_t,
    mhz: *mut c_uint,
) -> nvmlReturn_t {
    // SAFETY: NVML's contract: the pointer is null or may be written.
    device("nvmlDeviceGetClockInfo", handle, |gpu| unsafe { put(mhz, current(gpu, domain)?) })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlDeviceGetMaxClockInfo(
    handle: nvmlDevice_t,
    domain: nvmlClockType_t,
    mhz: *mut c_uint,
) -> nvmlReturn_t {
    // SAFETY: NVML's contract: the pointer is null or may be written.
    device("nvmlDeviceGetMaxClockInfo", handle, |_| unsafe { put(mhz, highest(domain)?) })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlDeviceGetClock(
    handle: nvmlDevice_t,
    domain: nvmlClockType_t,
    id: nvmlClockId_t,
    mhz: *mut c_uint,
) -> nvmlReturn_t {
    device("nvmlDeviceGetClock", handle, |gpu| {
        let clock = match id {
            0 => current(gpu, domain)?,
            // Targets, defaults and the customer's highest are all the highest of the board.
            1..=3 => highest(domain)?,
            _ => return Err(Code::INVALID_ARGUMENT),
        };
        // SAFETY: NVML's contract: the pointer is null or may be written.
        unsafe { put(mhz, clock) }
    })
}

/// Exports functions that ask for the clock that programs get: the highest, since nobody has asked for another. Video
/// engines have none of their own.
macro_rules! of_programs {
    ($(fn $name:ident;)*) => {$(
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name(handle: nvmlDevice_t, domain: nvmlClockType_t, mhz: *mut c_uint) -> nvmlReturn_t {
            device(stringify!($name), handle, |_| {
                if domain == nvmlClockType_enum_NVML_CLOCK_VIDEO {
                    return Err(Code::NOT_SUPPORTED);
                }
                // SAFETY: NVML's contract: the pointer is null or may be written.
                unsafe { put(mhz, highest(domain)?) }
            })
        }
    )*};
}

of_programs! {
    fn nvmlDeviceGetApplicationsClock;
    fn nvmlDeviceGetDefaultApplicationsClock;
}

/// The clocks that an H200's memory can run at.
const MEMORY_CLOCKS: [c_uint; 2] = [MEMORY_MHZ, 2_201];
/// The lowest clock of an H200's multiprocessors, and how far the clocks are apart.
const LOWEST_SM_MHZ: c_uint = 345;
const SM_STEP_MHZ: usize = 15;

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlDeviceGetSupportedMemoryClocks(
    handle: nvmlDevice_t,
    count: *mut c_uint,
    mhz: *mut c_uint,
) -> nvmlReturn_t {
    // SAFETY: NVML's contract: `count` may be read and written, and `mhz` is null or has room for so many.
    device("nvmlDeviceGetSupportedMemoryClocks", handle, |_| unsafe { put_list(mhz, count, MEMORY_CLOCKS.to_vec()) })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlDeviceGetSupportedGraphicsClocks(
    handle: nvmlDevice_t,
    memory_mhz: c_uint,
    count: *mut c_uint,
    mhz: *mut c_uint,
) -> nvmlReturn_t {
    device("nvmlDeviceGetSupportedGraphicsClocks", handle, |_| {
        if !MEMORY_CLOCKS.contains(&memory_mhz) {
            return Err(Code::NOT_FOUND);
        }
        let clocks = (LOWEST_SM_MHZ..=MAX_SM_MHZ).rev().step_by(SM_STEP_MHZ).collect();
        // SAFETY: NVML's contract: `count` may be read and written, and `mhz` is null or has room for so many.
        unsafe { put_list(mhz, count, clocks) }
    })
}

fn current(gpu: &Gpu, domain: nvmlClockType_t) -> Result<c_uint, Code> {
    let state = gpu.state();
    by_domain(domain, state.sm_mhz, state.memory_mhz, state.video_mhz)
}

fn highest(domain: nvmlClockType_t) -> Result<c_uint, Code> {
    by_domain(domain, MAX_SM_MHZ, MEMORY_MHZ, MAX_VIDEO_MHZ)
}

#[allow(non_upper_case_globals)]
fn by_domain(domain: nvmlClockType_t, sm: u32, memory: u32, video: u32) -> Result<c_uint, Code> {
    match domain {
        nvmlClockType_enum_NVML_CLOCK_GRAPHICS | nvmlClockType_enum_NVML_CLOCK_SM => Ok(sm),
        nvmlClockType_enum_NVML_CLOCK_MEM => Ok(memory),
        nvmlClockType_enum_NVML_CLOCK_VIDEO => Ok(video),
        _ => Err(Code::INVALID_ARGUMENT),
    }
}

fn reasons(gpu: &Gpu) -> c_ulonglong {
    gpu.state().throttle_reasons.iter().fold(0, |bits, reason| bits | bit(*reason))
}

/// The bit of a reason, as `nvml.h` numbers them.
fn bit(reason: ThrottleReason) -> c_ulonglong {
    match reason {
        ThrottleReason::GpuIdle => 0x1,
        ThrottleReason::ApplicationsClocksSetting => 0x2,
        ThrottleReason::SwPowerCap => 0x4,
        ThrottleReason::HwSlowdown => 0x8,
        ThrottleReason::SyncBoost => 0x10,
        ThrottleReason::SwThermalSlowdown => 0x20,
        ThrottleReason::HwThermalSlowdown => 0x40,
        ThrottleReason::HwPowerBrakeSlowdown => 0x80,
        ThrottleReason::DisplayClockSetting => 0x100,
    }
}
