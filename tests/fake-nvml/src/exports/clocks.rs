//! Clocks, and what holds them down.

use std::ffi::{c_uint, c_ulonglong};

use gpumon_probe::{
    model::ThrottleReason,
    vendor::sim::{MAX_SM_MHZ, MAX_VIDEO_MHZ, MEMORY_MHZ},
};
use nvml_wrapper_sys::bindings::{
    nvmlClockId_t, nvmlClockType_enum_NVML_CLOCK_GRAPHICS, nvmlClockType_enum_NVML_CLOCK_MEM,
    nvmlClockType_enum_NVML_CLOCK_SM, nvmlClockType_enum_NVML_CLOCK_VIDEO, nvmlClockType_t,
    nvmlPstates_t,
};

use super::exports;
use crate::{call::Gpu, code::Code};

/// All nine reasons of [`bit`].
const EVERY_REASON: c_ulonglong = 0x1FF;

exports! {
    fn nvmlDeviceGetPerformanceState(device |gpu|) -> nvmlPstates_t { Ok(gpu.state().performance_state.into()) }
    fn nvmlDeviceGetCurrentClocksEventReasons(device |gpu|) -> c_ulonglong { Ok(reasons(gpu)) }
    fn nvmlDeviceGetCurrentClocksThrottleReasons(device |gpu|) -> c_ulonglong { Ok(reasons(gpu)) }
    fn nvmlDeviceGetSupportedClocksEventReasons(device |_|) -> c_ulonglong { Ok(EVERY_REASON) }
    fn nvmlDeviceGetSupportedClocksThrottleReasons(device |_|) -> c_ulonglong { Ok(EVERY_REASON) }
    fn nvmlDeviceGetClockInfo(device |gpu|, domain: nvmlClockType_t) -> c_uint { current(gpu, domain) }
    fn nvmlDeviceGetMaxClockInfo(device |_|, domain: nvmlClockType_t) -> c_uint { highest(domain) }
    fn nvmlDeviceGetClock(device |gpu|, domain: nvmlClockType_t, id: nvmlClockId_t) -> c_uint {
        Ok(match id {
            0 => current(gpu, domain)?,
            // Targets, defaults and the customer's highest are all the highest of the board.
            1..=3 => highest(domain)?,
            _ => return Err(Code::INVALID_ARGUMENT),
        })
    }
}

/// The clock that programs get: the highest, since nobody has asked for another. Video engines have none of their own.
fn of_programs(domain: nvmlClockType_t) -> Result<c_uint, Code> {
    if domain == nvmlClockType_enum_NVML_CLOCK_VIDEO {
        Err(Code::NOT_SUPPORTED)
    } else {
        highest(domain)
    }
}

exports! {
    fn nvmlDeviceGetApplicationsClock(device |_|, domain: nvmlClockType_t) -> c_uint { of_programs(domain) }
    fn nvmlDeviceGetDefaultApplicationsClock(device |_|, domain: nvmlClockType_t) -> c_uint { of_programs(domain) }
}

/// The clocks that an H200's memory can run at.
const MEMORY_CLOCKS: [c_uint; 2] = [MEMORY_MHZ, 2_201];
/// The lowest clock of an H200's multiprocessors, and how far the clocks are apart.
const LOWEST_SM_MHZ: c_uint = 345;
const SM_STEP_MHZ: usize = 15;

exports! {
    fn nvmlDeviceGetSupportedMemoryClocks(device |_|) -> [c_uint] { Ok(MEMORY_CLOCKS.to_vec()) }
    fn nvmlDeviceGetSupportedGraphicsClocks(device |_|, memory_mhz: c_uint) -> [c_uint] {
        if !MEMORY_CLOCKS.contains(&memory_mhz) {
            return Err(Code::NOT_FOUND);
        }
        Ok((LOWEST_SM_MHZ..=MAX_SM_MHZ).rev().step_by(SM_STEP_MHZ).collect())
    }
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
    gpu.state()
        .throttle_reasons
        .iter()
        .fold(0, |bits, reason| bits | bit(*reason))
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
