//! Who holds a GPU, and how much each of them uses it.

use std::ffi::{c_uint, c_ulonglong};

use gpumon_probe::{model::ProcessKind, source::sim::ProcessState};
use nvml_wrapper_sys::bindings::{nvmlDevice_t, nvmlProcessInfo_t, nvmlProcessUtilizationSample_t, nvmlReturn_t};

use crate::{
    call::{Gpu, device},
    code::Code,
    out::put_list,
};

/// The driver samples the processes' use once in this time.
const SAMPLE_MS: u64 = 200;
/// `NVML_VALUE_NOT_AVAILABLE` as memory.
const NOT_AVAILABLE: c_ulonglong = c_ulonglong::MAX;
/// The GPU and compute instance of a process outside of MIG.
const NO_INSTANCE: c_uint = c_uint::MAX;

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlDeviceGetComputeRunningProcesses_v3(
    handle: nvmlDevice_t,
    count: *mut c_uint,
    infos: *mut nvmlProcessInfo_t,
) -> nvmlReturn_t {
    device("nvmlDeviceGetComputeRunningProcesses_v3", handle, |gpu| {
        // SAFETY: NVML's contract: `count` may be read and written, and `infos` is null or has room for so many.
        unsafe { put_list(infos, count, running(gpu, |kind| kind != ProcessKind::Graphics)) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlDeviceGetGraphicsRunningProcesses_v3(
    handle: nvmlDevice_t,
    count: *mut c_uint,
    infos: *mut nvmlProcessInfo_t,
) -> nvmlReturn_t {
    device("nvmlDeviceGetGraphicsRunningProcesses_v3", handle, |gpu| {
        // SAFETY: as for the compute processes.
        unsafe { put_list(infos, count, running(gpu, |kind| kind != ProcessKind::Compute)) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlDeviceGetMPSComputeRunningProcesses_v3(
    handle: nvmlDevice_t,
    count: *mut c_uint,
    infos: *mut nvmlProcessInfo_t,
) -> nvmlReturn_t {
    // Nobody runs the multi-process service here.
    // SAFETY: as for the compute processes.
    device("nvmlDeviceGetMPSComputeRunningProcesses_v3", handle, |_| unsafe { put_list(infos, count, vec![]) })
}

fn running(gpu: &Gpu, wanted: impl Fn(ProcessKind) -> bool) -> Vec<nvmlProcessInfo_t> {
    let info = |process: ProcessState| nvmlProcessInfo_t {
        pid: process.pid,
        usedGpuMemory: process.memory_bytes.unwrap_or(NOT_AVAILABLE),
        gpuInstanceId: NO_INSTANCE,
        computeInstanceId: NO_INSTANCE,
    };
    gpu.state().processes.into_iter().filter(|process| wanted(process.kind)).map(info).collect()
}

/// One sample per process that was busy in the newest sampling period, unless the caller has seen that one.
#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlDeviceGetProcessUtilization(
    handle: nvmlDevice_t,
    samples: *mut nvmlProcessUtilizationSample_t,
    count: *mut c_uint,
    last_seen_us: c_ulonglong,
) -> nvmlReturn_t {
    device("nvmlDeviceGetProcessUtilization", handle, |gpu| {
        let sampled_ms = gpu.elapsed_ms / SAMPLE_MS * SAMPLE_MS;
        let timestamp_us = gpu.session.timeline.unix_ms(sampled_ms as f64 / 1000.0) * 1000;
        let processes = gpu.session.world.state(gpu.index, sampled_ms).processes;
        let sample = |process: ProcessState| nvmlProcessUtilizationSample_t {
            pid: process.pid,
            timeStamp: timestamp_us,
            smUtil: process.sm_percent,
            memUtil: process.memory_percent,
            encUtil: process.encoder_percent,
            decUtil: process.decoder_percent,
        };
        let busy: Vec<_> = processes.into_iter().filter(|process| process.sm_percent > 0).map(sample).collect();
        if timestamp_us <= last_seen_us || busy.is_empty() {
            return Err(Code::NOT_FOUND);
        }
        // SAFETY: NVML's contract: `count` may be read and written, and `samples` is null or has room for so many.
        unsafe { put_list(samples, count, busy) }
    })
}
