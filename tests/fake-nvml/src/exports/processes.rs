//! Who holds a GPU, and how much each of them uses it.

use std::ffi::{c_uint, c_ulonglong};

use gpumon_probe::{model::ProcessKind, source::sim::ProcessState};
use nvml_wrapper_sys::bindings::{
    nvmlDevice_t, nvmlProcessInfo_t, nvmlProcessInfo_v2_t, nvmlProcessUtilizationSample_t, nvmlReturn_t,
};

use super::mig::refuse_divided;
use crate::{
    call::{device, part},
    code::Code,
    out::put_list,
};

/// The driver samples the processes' use once in this time.
const SAMPLE_MS: u64 = 200;
/// `NVML_VALUE_NOT_AVAILABLE` as memory.
const NOT_AVAILABLE: c_ulonglong = c_ulonglong::MAX;
/// The GPU and compute instance of a process outside of MIG.
const NO_INSTANCE: c_uint = c_uint::MAX;

/// Exports functions that list processes of one kind.
macro_rules! lists {
    ($(fn $name:ident($type:ident) = $wanted:expr;)*) => {$(
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name(handle: nvmlDevice_t, count: *mut c_uint, infos: *mut $type) -> nvmlReturn_t {
            part(stringify!($name), handle, |gpu| {
                let info = |process: &ProcessState| $type {
                    pid: process.pid,
                    usedGpuMemory: process.memory_bytes.unwrap_or(NOT_AVAILABLE),
                    gpuInstanceId: process.mig.map_or(NO_INSTANCE, |instance| instance.gpu_instance),
                    computeInstanceId: process.mig.map_or(NO_INSTANCE, |instance| instance.compute_instance),
                };
                let wanted: fn(&ProcessState) -> bool = $wanted;
                let state = gpu.state();
                // A MIG device lists those in it, a GPU all.
                let inside = |process: &&ProcessState| gpu.instance.is_none() || process.mig == gpu.instance;
                let listed = state.processes.iter().filter(inside).filter(|process| wanted(process));
                let running = listed.map(info).collect();
                // SAFETY: NVML's contract: `count` may be read and written, and `infos` is null or has room for so
                // many.
                unsafe { put_list(infos, count, running) }
            })
        }
    )*};
}

lists! {
    fn nvmlDeviceGetComputeRunningProcesses_v2(nvmlProcessInfo_v2_t) = computes;
    fn nvmlDeviceGetComputeRunningProcesses_v3(nvmlProcessInfo_t) = computes;
    fn nvmlDeviceGetGraphicsRunningProcesses_v2(nvmlProcessInfo_v2_t) = draws;
    fn nvmlDeviceGetGraphicsRunningProcesses_v3(nvmlProcessInfo_t) = draws;
    fn nvmlDeviceGetMPSComputeRunningProcesses_v2(nvmlProcessInfo_v2_t) = |process| process.mps;
    fn nvmlDeviceGetMPSComputeRunningProcesses_v3(nvmlProcessInfo_t) = |process| process.mps;
}

/// The clients of the Multi-Process Service are in the driver's list of compute processes, too.
fn computes(process: &ProcessState) -> bool {
    process.kind != ProcessKind::Graphics
}

fn draws(process: &ProcessState) -> bool {
    process.kind != ProcessKind::Compute
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
        refuse_divided(gpu)?;
        let sampled_ms = gpu.elapsed_ms / SAMPLE_MS * SAMPLE_MS;
        let timestamp_us = gpu.machine().stamp_us(gpu.index, sampled_ms);
        let processes = gpu.machine().world.processes(gpu.index, sampled_ms);
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
