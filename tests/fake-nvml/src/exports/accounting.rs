//! Processes as the driver accounts for them.

use std::ffi::c_uint;

use gpumon_probe::model::AccountedProcess;
use nvml_wrapper_sys::bindings::{
    nvmlAccountingStats_t, nvmlDevice_t, nvmlEnableState_enum_NVML_FEATURE_DISABLED as DISABLED,
    nvmlEnableState_enum_NVML_FEATURE_ENABLED as ENABLED, nvmlEnableState_t, nvmlReturn_t,
};

use super::one_value;
use crate::{
    call::{Gpu, device},
    code::Code,
    out::{put, put_list},
};

/// How many processes the driver remembers.
const BUFFER: c_uint = 4_000;

one_value! {
    fn nvmlDeviceGetAccountingMode(nvmlEnableState_t) = |gpu| {
        Ok(if gpu.identity().accounting { ENABLED } else { DISABLED })
    };
    fn nvmlDeviceGetAccountingBufferSize(c_uint) = |_| Ok(BUFFER);
}

/// None where accounting is off.
fn accounted(gpu: &Gpu) -> Vec<AccountedProcess> {
    let mut accounted = gpu.machine().world.accounted(gpu.index, gpu.elapsed_ms, &gpu.machine().timeline);
    accounted.drain(..accounted.len().saturating_sub(BUFFER as usize));
    accounted
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlDeviceGetAccountingPids(
    handle: nvmlDevice_t,
    count: *mut c_uint,
    pids: *mut c_uint,
) -> nvmlReturn_t {
    device("nvmlDeviceGetAccountingPids", handle, |gpu| {
        let known = accounted(gpu).into_iter().map(|process| process.pid).collect();
        // SAFETY: NVML's contract: `count` may be read and written, and `pids` is null or has room for so many.
        unsafe { put_list(pids, count, known) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlDeviceGetAccountingStats(
    handle: nvmlDevice_t,
    pid: c_uint,
    stats: *mut nvmlAccountingStats_t,
) -> nvmlReturn_t {
    device("nvmlDeviceGetAccountingStats", handle, |gpu| {
        let process = accounted(gpu).into_iter().find(|process| process.pid == pid).ok_or(Code::NOT_FOUND)?;
        let percent = |reading: Option<&f64>| reading.map_or(c_uint::MAX, |percent| *percent as c_uint);
        let answer = nvmlAccountingStats_t {
            gpuUtilization: percent(process.gpu_percent.value()),
            memoryUtilization: percent(process.memory_percent.value()),
            maxMemoryUsage: process.max_memory_bytes.value().copied().unwrap_or(u64::MAX),
            time: process.time_ms,
            startTime: process.started_us,
            isRunning: process.running.into(),
            reserved: [0; 5],
        };
        // SAFETY: NVML's contract: the pointer is null or may be written.
        unsafe { put(stats, answer) }
    })
}
