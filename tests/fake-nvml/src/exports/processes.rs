//! The processes on a GPU and their utilization.

use std::ffi::{c_uint, c_ulonglong};

use gpumon_probe::{
    model::ProcessKind,
    vendor::sim::{GpuState, ProcessState},
};
use nvml_wrapper_sys::bindings::{
    nvmlDevice_t, nvmlProcessInfo_t, nvmlProcessInfo_v1_t, nvmlProcessInfo_v2_t,
    nvmlProcessUtilizationInfo_v1_t, nvmlProcessUtilizationSample_t,
    nvmlProcessesUtilizationInfo_t, nvmlReturn_t,
};

use super::{exports, mig::refuse_mig_gpu};
use crate::{
    call::{Gpu, device, part},
    code::Code,
    held::make_compute_process,
    notes::PERIOD_MS,
    out::put_list,
};

/// The value `NVML_VALUE_NOT_AVAILABLE` for memory.
const NOT_AVAILABLE: c_ulonglong = c_ulonglong::MAX;
/// The GPU and compute instance ID of a process outside of MIG.
const NO_INSTANCE: c_uint = c_uint::MAX;

/// Returns processes in the order in which the driver lists them: by start time. Processes that
/// started before the driver are in the scenario's order.
fn sorted_processes(
    state: &GpuState,
    wanted: fn(&ProcessState) -> bool,
) -> impl Iterator<Item = &ProcessState> {
    let mut listed: Vec<_> = state
        .processes
        .iter()
        .filter(|process| wanted(process))
        .collect();
    listed.sort_by(|one, other| one.started_s.total_cmp(&other.started_s));
    listed.into_iter()
}

/// Exports functions with process lists in the format of drivers before 450, without instances.
macro_rules! short_lists {
    ($(fn $name:ident = $wanted:expr;)*) => {$(
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name(
            handle: nvmlDevice_t,
            count: *mut c_uint,
            infos: *mut nvmlProcessInfo_v1_t,
        ) -> nvmlReturn_t {
            device(stringify!($name), handle, |gpu| {
                let info = |process: &ProcessState| nvmlProcessInfo_v1_t {
                    pid: process.pid,
                    usedGpuMemory: process.memory_bytes.unwrap_or(NOT_AVAILABLE),
                };
                let wanted: fn(&ProcessState) -> bool = $wanted;
                let running = sorted_processes(&gpu.state(), wanted).map(info).collect();
                // SAFETY: by NVML's contract, `count` may be read and written, and `infos` is null
                // or has room for `*count` items.
                unsafe { put_list(infos, count, running) }
            })
        }
    )*};
}

short_lists! {
    fn nvmlDeviceGetComputeRunningProcesses = is_compute;
    fn nvmlDeviceGetGraphicsRunningProcesses = is_graphics;
    fn nvmlDeviceGetMPSComputeRunningProcesses = |process| process.mps;
}

/// Exports functions with lists of processes of one kind.
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
                // The list of a MIG device has only its own processes; the list of a GPU has all
                // processes.
                let inside = |process: &&ProcessState| gpu.instance.is_none() || process.mig == gpu.instance;
                let running = sorted_processes(&gpu.state(), wanted).filter(inside).map(info).collect();
                // SAFETY: by NVML's contract, `count` may be read and written, and `infos` is null
                // or has room for `*count` items.
                unsafe { put_list(infos, count, running) }
            })
        }
    )*};
}

lists! {
    fn nvmlDeviceGetComputeRunningProcesses_v2(nvmlProcessInfo_v2_t) = is_compute;
    fn nvmlDeviceGetComputeRunningProcesses_v3(nvmlProcessInfo_t) = is_compute;
    fn nvmlDeviceGetGraphicsRunningProcesses_v2(nvmlProcessInfo_v2_t) = is_graphics;
    fn nvmlDeviceGetGraphicsRunningProcesses_v3(nvmlProcessInfo_t) = is_graphics;
    fn nvmlDeviceGetMPSComputeRunningProcesses_v2(nvmlProcessInfo_v2_t) = |process| process.mps;
    fn nvmlDeviceGetMPSComputeRunningProcesses_v3(nvmlProcessInfo_t) = |process| process.mps;
}

/// Returns whether the driver lists a process as a compute process, which includes clients of the
/// Multi-Process Service.
fn is_compute(process: &ProcessState) -> bool {
    process.kind != ProcessKind::Graphics
}

fn is_graphics(process: &ProcessState) -> bool {
    process.kind != ProcessKind::Compute
}

/// Writes one sample for each process that was busy in the latest sampling period. If the caller
/// has already received this period, nothing is written.
#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlDeviceGetProcessUtilization(
    handle: nvmlDevice_t,
    samples: *mut nvmlProcessUtilizationSample_t,
    count: *mut c_uint,
    last_seen_us: c_ulonglong,
) -> nvmlReturn_t {
    device("nvmlDeviceGetProcessUtilization", handle, |gpu| {
        let (timestamp_us, busy) = latest_samples(gpu, last_seen_us)?;
        let sample = |process: ProcessState| nvmlProcessUtilizationSample_t {
            pid: process.pid,
            timeStamp: timestamp_us,
            smUtil: process.sm_percent,
            memUtil: process.memory_percent,
            encUtil: process.encoder_percent,
            decUtil: process.decoder_percent,
        };
        // SAFETY: by NVML's contract, `count` may be read and written, and `samples` is null or has
        // room for `*count` items.
        unsafe { put_list(samples, count, busy.into_iter().map(sample).collect()) }
    })
}

exports! {
    fn nvmlDeviceGetProcessesUtilizationInfo(device |gpu|) fills own: nvmlProcessesUtilizationInfo_t, 1 {
        let (timestamp_us, busy) = latest_samples(gpu, own.lastSeenTimeStamp)?;
        let sample = |process: ProcessState| nvmlProcessUtilizationInfo_v1_t {
            timeStamp: timestamp_us,
            pid: process.pid,
            smUtil: process.sm_percent,
            memUtil: process.memory_percent,
            encUtil: process.encoder_percent,
            decUtil: process.decoder_percent,
            jpgUtil: 0,
            ofaUtil: 0,
        };
        let infos = busy.into_iter().map(sample).collect();
        // SAFETY: by NVML's contract, the list is null or has room for `processSamplesCount` items.
        unsafe { put_list(own.procUtilArray, &raw mut own.processSamplesCount, infos) }
    }
}

/// Returns the end of the latest sampling period and the processes that were busy in it, unless the
/// caller has already received this period.
fn latest_samples(
    gpu: &Gpu,
    last_seen_us: c_ulonglong,
) -> Result<(c_ulonglong, Vec<ProcessState>), Code> {
    refuse_mig_gpu(gpu)?;
    let sampled_ms = gpu.elapsed_ms / PERIOD_MS * PERIOD_MS;
    let timestamp_us = gpu.machine().driver_timestamp_us(gpu.index, sampled_ms);
    let mut processes = gpu.machine().world.processes(gpu.index, sampled_ms);
    let is_busy = |process: &ProcessState| {
        process
            .sm_percent
            .max(process.encoder_percent)
            .max(process.decoder_percent)
            > 0
    };
    processes.retain(is_busy);
    let noted = gpu
        .latest_period_activity()
        .into_iter()
        .flat_map(|note| note.busy);
    processes.extend(noted.map(|(pid, percent)| make_compute_process(pid, None, percent)));
    if timestamp_us <= last_seen_us || processes.is_empty() {
        Err(Code::NOT_FOUND)
    } else {
        Ok((timestamp_us, processes))
    }
}
