//! Compute instances within GPU instances: which there can be, and which there are.

use std::ffi::c_uint;

use nvml_wrapper_sys::bindings::{
    NVML_COMPUTE_INSTANCE_ENGINE_PROFILE_COUNT, nvmlComputeInstance_t, nvmlComputeInstanceInfo_t,
    nvmlComputeInstancePlacement_t, nvmlComputeInstanceProfileInfo_t, nvmlComputeInstanceProfileInfo_v2_t,
    nvmlGpuInstance_t, nvmlReturn_t,
};

use super::{identity::padded, version_of};
use crate::{
    call::{compute_handle, compute_instance, gpu_instance, instance_handle},
    code::Code,
    division::{ComputeProfile, Part, Place},
    out::{items, put, put_all},
};

/// A profile by its number and by how it shares the engines.
fn asked(part: &Part, profile: c_uint, engines: c_uint) -> Result<ComputeProfile, Code> {
    if engines >= NVML_COMPUTE_INSTANCE_ENGINE_PROFILE_COUNT {
        return Err(Code::INVALID_ARGUMENT);
    }
    ComputeProfile::numbered(part, profile)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlGpuInstanceGetComputeInstanceProfileInfo(
    handle: nvmlGpuInstance_t,
    profile: c_uint,
    engines: c_uint,
    info: *mut nvmlComputeInstanceProfileInfo_t,
) -> nvmlReturn_t {
    gpu_instance("nvmlGpuInstanceGetComputeInstanceProfileInfo", handle, |_, part| {
        let own = asked(part, profile, engines)?;
        let answer = nvmlComputeInstanceProfileInfo_t {
            id: own.id(),
            sliceCount: own.slices,
            instanceCount: own.places(part).len() as c_uint,
            multiprocessorCount: own.multiprocessors(part),
            sharedCopyEngineCount: part.profile.copy_engines,
            sharedDecoderCount: part.profile.decoders,
            sharedEncoderCount: 0,
            sharedJpegCount: part.profile.decoders,
            sharedOfaCount: part.profile.optical_flow_engines,
        };
        // SAFETY: NVML's contract: the pointer is null or may be written.
        unsafe { put(info, answer) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlGpuInstanceGetComputeInstanceProfileInfoV(
    handle: nvmlGpuInstance_t,
    profile: c_uint,
    engines: c_uint,
    info: *mut nvmlComputeInstanceProfileInfo_v2_t,
) -> nvmlReturn_t {
    gpu_instance("nvmlGpuInstanceGetComputeInstanceProfileInfoV", handle, |_, part| {
        // SAFETY: NVML's contract: the pointer is null or points at a structure with its version filled in.
        let [info] = unsafe { items(info, 1) }? else { return Err(Code::INVALID_ARGUMENT) };
        if info.version != version_of::<nvmlComputeInstanceProfileInfo_v2_t>(2) {
            return Err(Code::ARGUMENT_VERSION_MISMATCH);
        }
        let own = asked(part, profile, engines)?;
        *info = nvmlComputeInstanceProfileInfo_v2_t {
            version: info.version,
            id: own.id(),
            sliceCount: own.slices,
            instanceCount: own.places(part).len() as c_uint,
            multiprocessorCount: own.multiprocessors(part),
            sharedCopyEngineCount: part.profile.copy_engines,
            sharedDecoderCount: part.profile.decoders,
            sharedEncoderCount: 0,
            sharedJpegCount: part.profile.decoders,
            sharedOfaCount: part.profile.optical_flow_engines,
            name: padded(&format!("MIG {}", own.name(part))),
        };
        Ok(())
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlGpuInstanceGetComputeInstanceRemainingCapacity(
    handle: nvmlGpuInstance_t,
    profile: c_uint,
    count: *mut c_uint,
) -> nvmlReturn_t {
    gpu_instance("nvmlGpuInstanceGetComputeInstanceRemainingCapacity", handle, |_, part| {
        let room = ComputeProfile::of(part, profile)?.room(part);
        // SAFETY: NVML's contract: the pointer is null or may be written.
        unsafe { put(count, room) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlGpuInstanceGetComputeInstancePossiblePlacements(
    handle: nvmlGpuInstance_t,
    profile: c_uint,
    placements: *mut nvmlComputeInstancePlacement_t,
    count: *mut c_uint,
) -> nvmlReturn_t {
    gpu_instance("nvmlGpuInstanceGetComputeInstancePossiblePlacements", handle, |_, part| {
        let places = ComputeProfile::of(part, profile)?.places(part).into_iter().map(placement).collect();
        // SAFETY: NVML's contract: `count` may be written, and `placements` is null or has room for so many.
        unsafe { put_all(placements, count, places) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlGpuInstanceGetComputeInstances(
    handle: nvmlGpuInstance_t,
    profile: c_uint,
    instances: *mut nvmlComputeInstance_t,
    count: *mut c_uint,
) -> nvmlReturn_t {
    gpu_instance("nvmlGpuInstanceGetComputeInstances", handle, |gpu, part| {
        let profile = ComputeProfile::of(part, profile)?;
        let own = part.inside.iter().filter(|inside| inside.profile == profile);
        let handles = own.map(|inside| compute_handle(gpu.index, part.id, inside.id)).collect();
        // SAFETY: NVML's contract: `count` may be written, and there is room for all instances of a profile.
        unsafe { put_all(instances, count, handles) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlComputeInstanceGetInfo_v2(
    handle: nvmlComputeInstance_t,
    info: *mut nvmlComputeInstanceInfo_t,
) -> nvmlReturn_t {
    compute_instance("nvmlComputeInstanceGetInfo_v2", handle, |gpu, part, inside| {
        let answer = nvmlComputeInstanceInfo_t {
            device: gpu.handle(),
            gpuInstance: instance_handle(gpu.index, part.id),
            id: inside.id,
            profileId: inside.profile.id(),
            placement: placement(inside.place),
        };
        // SAFETY: NVML's contract: the pointer is null or may be written.
        unsafe { put(info, answer) }
    })
}

fn placement((start, size): Place) -> nvmlComputeInstancePlacement_t {
    nvmlComputeInstancePlacement_t { start, size }
}
