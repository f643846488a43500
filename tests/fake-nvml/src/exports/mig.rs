//! MIG devices, each with its own handle.

use std::ffi::c_uint;

use gpumon_probe::vendor::sim::MigState;
use nvml_wrapper_sys::bindings::nvmlDevice_t;

use super::exports;
use crate::{
    call::{Gpu, encode_handle},
    code::{Code, Outcome},
};

/// Returns an error if the GPU is in MIG mode. This is for queries that the driver refuses in this
/// mode.
pub(super) fn refuse_mig_gpu(gpu: &Gpu) -> Outcome {
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
    fn nvmlDeviceGetMigDeviceHandleByIndex(device |gpu|, index: c_uint) -> nvmlDevice_t {
        check_supported(gpu)?;
        if index >= MigState::MAX_SLICES {
            return Err(Code::INVALID_ARGUMENT);
        }
        let state = gpu.state();
        let own = state.mig.get(index as usize).ok_or(Code::NOT_FOUND)?;
        Ok(encode_handle(gpu.index, Some(own.instance)))
    }
    fn nvmlDeviceIsMigDeviceHandle(part |gpu|) -> c_uint { Ok(gpu.instance.is_some().into()) }
    fn nvmlDeviceGetDeviceHandleFromMigDeviceHandle(part |gpu|) -> nvmlDevice_t {
        gpu.mig_device()?;
        Ok(gpu.handle())
    }
    fn nvmlDeviceGetGpuInstanceId(part |gpu|) -> c_uint { Ok(gpu.mig_device()?.instance.gpu_instance) }
    fn nvmlDeviceGetComputeInstanceId(part |gpu|) -> c_uint { Ok(gpu.mig_device()?.instance.compute_instance) }
}
