//! MIG: a GPU's parts, each with a handle of its own.

use std::ffi::c_uint;

use gpumon_probe::vendor::sim::MigState;
use nvml_wrapper_sys::bindings::{nvmlDevice_t, nvmlDeviceAttributes_t, nvmlReturn_t};

use super::one_value;
use crate::{
    call::{Gpu, device, handle, part},
    code::{Code, Outcome},
    out::put,
};

/// What the driver does not say of a GPU that is divided.
pub(super) fn refuse_divided(gpu: &Gpu) -> Outcome {
    if gpu.machine().world.is_divided(gpu.index, gpu.elapsed_ms) { Err(Code::NOT_SUPPORTED) } else { Ok(()) }
}

fn check_supported(gpu: &Gpu) -> Outcome {
    if gpu.identity().has_mig() { Ok(()) } else { Err(Code::NOT_SUPPORTED) }
}

one_value! {
    // A GPU that is not divided has room for none, whether it could be divided or not.
    fn nvmlDeviceGetMaxMigDeviceCount(c_uint) = |gpu| {
        let divided = gpu.machine().world.is_divided(gpu.index, gpu.elapsed_ms);
        Ok(if divided { MigState::MOST } else { 0 })
    };
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlDeviceGetMigMode(
    handle: nvmlDevice_t,
    current: *mut c_uint,
    pending: *mut c_uint,
) -> nvmlReturn_t {
    device("nvmlDeviceGetMigMode", handle, |gpu| {
        check_supported(gpu)?;
        let mode = gpu.machine().world.is_divided(gpu.index, gpu.elapsed_ms).into();
        // SAFETY: NVML's contract: each pointer is null or may be written.
        unsafe { put(current, mode).and_then(|()| put(pending, mode)) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlDeviceGetMigDeviceHandleByIndex(
    of: nvmlDevice_t,
    index: c_uint,
    mig_device: *mut nvmlDevice_t,
) -> nvmlReturn_t {
    device("nvmlDeviceGetMigDeviceHandleByIndex", of, |gpu| {
        check_supported(gpu)?;
        if index >= MigState::MOST {
            return Err(Code::INVALID_ARGUMENT);
        }
        let state = gpu.state();
        let own = state.mig.get(index as usize).ok_or(Code::NOT_FOUND)?;
        // SAFETY: NVML's contract: the pointer is null or may be written.
        unsafe { put(mig_device, handle(gpu.index, Some(own.instance))) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlDeviceIsMigDeviceHandle(handle: nvmlDevice_t, is_mig: *mut c_uint) -> nvmlReturn_t {
    // SAFETY: NVML's contract: the pointer is null or may be written.
    part("nvmlDeviceIsMigDeviceHandle", handle, |gpu| unsafe { put(is_mig, gpu.instance.is_some().into()) })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlDeviceGetDeviceHandleFromMigDeviceHandle(
    mig_device: nvmlDevice_t,
    device: *mut nvmlDevice_t,
) -> nvmlReturn_t {
    part("nvmlDeviceGetDeviceHandleFromMigDeviceHandle", mig_device, |gpu| {
        gpu.mig_device()?;
        // SAFETY: NVML's contract: the pointer is null or may be written.
        unsafe { put(device, gpu.handle()) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlDeviceGetGpuInstanceId(handle: nvmlDevice_t, id: *mut c_uint) -> nvmlReturn_t {
    // SAFETY: NVML's contract: the pointer is null or may be written.
    part("nvmlDeviceGetGpuInstanceId", handle, |gpu| unsafe { put(id, gpu.mig_device()?.instance.gpu_instance) })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlDeviceGetComputeInstanceId(handle: nvmlDevice_t, id: *mut c_uint) -> nvmlReturn_t {
    part("nvmlDeviceGetComputeInstanceId", handle, |gpu| {
        // SAFETY: NVML's contract: the pointer is null or may be written.
        unsafe { put(id, gpu.mig_device()?.instance.compute_instance) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlDeviceGetAttributes_v2(
    handle: nvmlDevice_t,
    attributes: *mut nvmlDeviceAttributes_t,
) -> nvmlReturn_t {
    part("nvmlDeviceGetAttributes_v2", handle, |gpu| {
        if gpu.instance.is_none() {
            return Err(Code::NOT_SUPPORTED);
        }
        let own = gpu.mig_device()?;
        let answer = nvmlDeviceAttributes_t {
            multiprocessorCount: own.multiprocessors,
            sharedCopyEngineCount: own.copy_engines,
            sharedDecoderCount: own.decoders,
            sharedEncoderCount: 0,
            sharedJpegCount: own.decoders,
            sharedOfaCount: u32::from(own.slices == MigState::MOST),
            gpuInstanceSliceCount: own.slices,
            computeInstanceSliceCount: own.slices,
            memorySizeMB: own.memory_total_bytes >> 20,
        };
        // SAFETY: NVML's contract: the pointer is null or may be written.
        unsafe { put(attributes, answer) }
    })
}
