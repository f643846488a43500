//! Processes as the driver accounts for them.

use std::ffi::c_uint;

use gpumon_probe::model::AccountedProcess;
use nvml_wrapper_sys::bindings::{
    nvmlAccountingStats_t, nvmlEnableState_enum_NVML_FEATURE_DISABLED as DISABLED,
    nvmlEnableState_enum_NVML_FEATURE_ENABLED as ENABLED, nvmlEnableState_t,
};

use super::exports;
use crate::{call::Gpu, code::Code};

/// How many processes the driver remembers.
const BUFFER: c_uint = 4_000;

exports! {
    fn nvmlDeviceGetAccountingMode(device |gpu|) -> nvmlEnableState_t {
        Ok(if gpu.identity().accounting { ENABLED } else { DISABLED })
    }
    fn nvmlDeviceGetAccountingBufferSize(device |_|) -> c_uint { Ok(BUFFER) }
}

/// None where accounting is off.
fn accounted(gpu: &Gpu) -> Vec<AccountedProcess> {
    let mut accounted =
        gpu.machine()
            .world
            .accounted(gpu.index, gpu.elapsed_ms, &gpu.machine().timeline);
    accounted.drain(..accounted.len().saturating_sub(BUFFER as usize));
    accounted
}

exports! {
    fn nvmlDeviceGetAccountingPids(device |gpu|) -> [c_uint] {
        Ok(accounted(gpu).into_iter().map(|process| process.pid).collect())
    }
    fn nvmlDeviceGetAccountingStats(device |gpu|, pid: c_uint) -> nvmlAccountingStats_t {
        let process = accounted(gpu).into_iter().find(|process| process.pid == pid).ok_or(Code::NOT_FOUND)?;
        let percent = |reading: Option<&f64>| reading.map_or(c_uint::MAX, |percent| *percent as c_uint);
        Ok(nvmlAccountingStats_t {
            gpuUtilization: percent(process.gpu_percent.value()),
            memoryUtilization: percent(process.memory_percent.value()),
            maxMemoryUsage: process.max_memory_bytes.value().copied().unwrap_or(u64::MAX),
            time: process.time_ms,
            startTime: process.started_us,
            isRunning: process.running.into(),
            reserved: [0; 5],
        })
    }
}
