//! MIG: a GPU's parts, each with a handle of its own.

use std::ffi::c_uint;

use gpumon_probe::vendor::sim::MigState;
use nvml_wrapper_sys::bindings::{nvmlDevice_t, nvmlDeviceAttributes_t};

use super::exports;
use crate::{
    call::{Gpu, handle},
    code::{Code, Outcome},
};

/// What the driver does not say of a GPU that is divided.
pub(super) fn refuse_divided(gpu: &Gpu) -> Outcome {
    if gpu.machine().world.is_divided(gpu.index, gpu.elapsed_ms) {
        Err(Code::NOT_SUPPORTED)
    } else {
        Ok(())
    }
}

fn check_supported(gpu: &Gpu) -> Outcome {
    if gpu.identity().has_mig() {
        Ok(())
    } else {
        Err(Code::NOT_SUPPORTED)
    }
}

exports! {
    // A GPU that is not divided has room for none, whether it could be divided or not.
    fn nvmlDeviceGetMaxMigDeviceCount(device |gpu|) -> c_uint {
        let divided = gpu.machine().world.is_divided(gpu.index, gpu.elapsed_ms);
        Ok(if divided { MigState::MOST } else { 0 })
    }
    fn nvmlDeviceGetMigMode(device |gpu|) -> (c_uint, c_uint) {
        check_supported(gpu)?;
        let mode = gpu.machine().world.is_divided(gpu.index, gpu.elapsed_ms).into();
        Ok((mode, mode))
    }
    fn nvmlDeviceGetMigDeviceHandleByIndex(device |gpu|, index: c_uint) -> nvmlDevice_t {
        check_supported(gpu)?;
        if index >= MigState::MOST {
            return Err(Code::INVALID_ARGUMENT);
        }
        let state = gpu.state();
        let own = state.mig.get(index as usize).ok_or(Code::NOT_FOUND)?;
        Ok(handle(gpu.index, Some(own.instance)))
    }
    fn nvmlDeviceIsMigDeviceHandle(part |gpu|) -> c_uint { Ok(gpu.instance.is_some().into()) }
    fn nvmlDeviceGetDeviceHandleFromMigDeviceHandle(part |gpu|) -> nvmlDevice_t {
        gpu.mig_device()?;
        Ok(gpu.handle())
    }
    fn nvmlDeviceGetGpuInstanceId(part |gpu|) -> c_uint { Ok(gpu.mig_device()?.instance.gpu_instance) }
    fn nvmlDeviceGetComputeInstanceId(part |gpu|) -> c_uint { Ok(gpu.mig_device()?.instance.compute_instance) }
    fn nvmlDeviceGetAttributes_v2(part |gpu|) -> nvmlDeviceAttributes_t {
        if gpu.instance.is_none() {
            return Err(Code::NOT_SUPPORTED);
        }
        let own = gpu.mig_device()?;
        Ok(nvmlDeviceAttributes_t {
            multiprocessorCount: own.multiprocessors,
            sharedCopyEngineCount: own.copy_engines,
            sharedDecoderCount: own.decoders,
            sharedEncoderCount: 0,
            sharedJpegCount: own.decoders,
            sharedOfaCount: u32::from(own.slices == MigState::MOST),
            gpuInstanceSliceCount: own.slices,
            computeInstanceSliceCount: own.compute_slices,
            memorySizeMB: own.memory_total_bytes >> 20,
        })
    }
}
