//! GPU instances: which there can be, and which there are.

use std::ffi::c_uint;

use nvml_wrapper_sys::bindings::{
    nvmlDevice_t, nvmlGpuInstance_t, nvmlGpuInstanceInfo_t, nvmlGpuInstancePlacement_t, nvmlGpuInstanceProfileInfo_t,
    nvmlGpuInstanceProfileInfo_v2_t, nvmlReturn_t,
};

use super::{identity::padded, version_of};
use crate::{
    call::{device, gpu_instance, instance_handle},
    code::Code,
    division::{Part, Place, Profile},
    out::{items, put, put_all},
};

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlDeviceGetGpuInstanceProfileInfo(
    handle: nvmlDevice_t,
    profile: c_uint,
    info: *mut nvmlGpuInstanceProfileInfo_t,
) -> nvmlReturn_t {
    device("nvmlDeviceGetGpuInstanceProfileInfo", handle, |gpu| {
        let own = Profile::numbered(gpu, profile)?;
        let answer = nvmlGpuInstanceProfileInfo_t {
            id: own.id,
            isP2pSupported: 0,
            sliceCount: own.slices,
            instanceCount: own.most,
            multiprocessorCount: own.multiprocessors,
            copyEngineCount: own.copy_engines,
            decoderCount: own.decoders,
            encoderCount: 0,
            jpegCount: own.decoders,
            ofaCount: own.optical_flow_engines,
            memorySizeMB: own.memory_mib,
        };
        // SAFETY: NVML's contract: the pointer is null or may be written.
        unsafe { put(info, answer) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlDeviceGetGpuInstanceProfileInfoV(
    handle: nvmlDevice_t,
    profile: c_uint,
    info: *mut nvmlGpuInstanceProfileInfo_v2_t,
) -> nvmlReturn_t {
    device("nvmlDeviceGetGpuInstanceProfileInfoV", handle, |gpu| {
        // SAFETY: NVML's contract: the pointer is null or points at a structure with its version filled in.
        let [info] = unsafe { items(info, 1) }? else { return Err(Code::INVALID_ARGUMENT) };
        if info.version != version_of::<nvmlGpuInstanceProfileInfo_v2_t>(2) {
            return Err(Code::ARGUMENT_VERSION_MISMATCH);
        }
        let own = Profile::numbered(gpu, profile)?;
        *info = nvmlGpuInstanceProfileInfo_v2_t {
            version: info.version,
            id: own.id,
            isP2pSupported: 0,
            sliceCount: own.slices,
            instanceCount: own.most,
            multiprocessorCount: own.multiprocessors,
            copyEngineCount: own.copy_engines,
            decoderCount: own.decoders,
            encoderCount: 0,
            jpegCount: own.decoders,
            ofaCount: own.optical_flow_engines,
            memorySizeMB: own.memory_mib,
            name: padded(&format!("MIG {}", own.name)),
        };
        Ok(())
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlDeviceGetGpuInstanceRemainingCapacity(
    handle: nvmlDevice_t,
    profile: c_uint,
    count: *mut c_uint,
) -> nvmlReturn_t {
    device("nvmlDeviceGetGpuInstanceRemainingCapacity", handle, |gpu| {
        let room = Profile::of(gpu, profile)?.room(&Part::all(gpu)?);
        // SAFETY: NVML's contract: the pointer is null or may be written.
        unsafe { put(count, room) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlDeviceGetGpuInstancePossiblePlacements_v2(
    handle: nvmlDevice_t,
    profile: c_uint,
    placements: *mut nvmlGpuInstancePlacement_t,
    count: *mut c_uint,
) -> nvmlReturn_t {
    device("nvmlDeviceGetGpuInstancePossiblePlacements_v2", handle, |gpu| {
        let places = Profile::of(gpu, profile)?.places().into_iter().map(placement).collect();
        // SAFETY: NVML's contract: `count` may be written, and `placements` is null or has room for so many.
        unsafe { put_all(placements, count, places) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlDeviceGetGpuInstances(
    handle: nvmlDevice_t,
    profile: c_uint,
    instances: *mut nvmlGpuInstance_t,
    count: *mut c_uint,
) -> nvmlReturn_t {
    device("nvmlDeviceGetGpuInstances", handle, |gpu| {
        Profile::of(gpu, profile)?;
        let parts = Part::all(gpu)?;
        let own = parts.iter().filter(|part| part.profile.id == profile);
        let handles = own.map(|part| instance_handle(gpu.index, part.id)).collect();
        // SAFETY: NVML's contract: `count` may be written, and there is room for all instances of a profile.
        unsafe { put_all(instances, count, handles) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlDeviceGetGpuInstanceById(
    handle: nvmlDevice_t,
    id: c_uint,
    instance: *mut nvmlGpuInstance_t,
) -> nvmlReturn_t {
    device("nvmlDeviceGetGpuInstanceById", handle, |gpu| {
        let part = Part::of(gpu, id, Code::NOT_FOUND)?;
        // SAFETY: NVML's contract: the pointer is null or may be written.
        unsafe { put(instance, instance_handle(gpu.index, part.id)) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlGpuInstanceGetInfo(
    handle: nvmlGpuInstance_t,
    info: *mut nvmlGpuInstanceInfo_t,
) -> nvmlReturn_t {
    gpu_instance("nvmlGpuInstanceGetInfo", handle, |gpu, part| {
        let answer = nvmlGpuInstanceInfo_t {
            device: gpu.handle(),
            id: part.id,
            profileId: part.profile.id,
            placement: placement(part.place),
        };
        // SAFETY: NVML's contract: the pointer is null or may be written.
        unsafe { put(info, answer) }
    })
}

fn placement((start, size): Place) -> nvmlGpuInstancePlacement_t {
    nvmlGpuInstancePlacement_t { start, size }
}
