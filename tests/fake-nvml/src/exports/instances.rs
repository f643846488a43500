//! MIG from the inside: which instances a GPU can be divided into, and which there are. Every GPU instance is one
//! compute instance.

use std::{
    ffi::{c_char, c_uint},
    ptr,
};

use gpumon_probe::source::sim::MigState;
use nvml_wrapper_sys::bindings::{
    nvmlComputeInstance_t, nvmlComputeInstanceInfo_t, nvmlComputeInstancePlacement_t, nvmlComputeInstanceProfileInfo_t,
    nvmlComputeInstanceProfileInfo_v2_t, nvmlDevice_t, nvmlGpuInstance_t, nvmlGpuInstanceInfo_t,
    nvmlGpuInstancePlacement_t, nvmlGpuInstanceProfileInfo_t, nvmlGpuInstanceProfileInfo_v2_t, nvmlReturn_t,
};

use super::{identity::padded, version_of};
use crate::{
    call::{Gpu, device, lookup},
    code::{Code, Outcome},
    out::{items, put, put_list},
};

/// A profile of an H200, as its driver lists it.
struct Profile {
    /// `NVML_GPU_INSTANCE_PROFILE_*`.
    number: c_uint,
    id: c_uint,
    name: &'static str,
    slices: c_uint,
    most: c_uint,
    /// Eighths of the memory.
    eighths: c_uint,
    /// Places where one can begin.
    places: c_uint,
    memory_mib: u64,
    multiprocessors: c_uint,
    copy_engines: c_uint,
    decoders: c_uint,
    ofa: c_uint,
}

const fn profile(number: c_uint, id: c_uint, name: &'static str, slices: c_uint, most: c_uint) -> Profile {
    let (eighths, multiprocessors, copy_engines, memory_mib) = match slices {
        1 => (1, 16, 1, 16_384),
        2 => (2, 32, 2, 33_280),
        3 => (4, 60, 3, 71_424),
        4 => (4, 64, 4, 71_424),
        _ => (8, 132, 8, 143_360),
    };
    Profile {
        number,
        id,
        name,
        slices,
        most,
        eighths,
        places: most,
        memory_mib,
        multiprocessors,
        copy_engines,
        decoders: slices,
        ofa: (slices == 7) as c_uint,
    }
}

const PROFILES: [Profile; 7] = [
    profile(0, 19, "MIG 1g.18gb", 1, 7),
    profile(1, 14, "MIG 2g.35gb", 2, 3),
    profile(2, 9, "MIG 3g.71gb", 3, 2),
    profile(3, 5, "MIG 4g.71gb", 4, 1),
    profile(4, 0, "MIG 7g.141gb", 7, 1),
    Profile { places: 7, ofa: 1, ..profile(7, 20, "MIG 1g.18gb+me", 1, 1) },
    Profile { eighths: 2, memory_mib: 33_280, multiprocessors: 26, ..profile(9, 15, "MIG 1g.35gb", 1, 4) },
];

/// The number of slices of each `NVML_COMPUTE_INSTANCE_PROFILE_*`, which is its id, too.
const COMPUTE_SLICES: [c_uint; 5] = [1, 2, 3, 4, 7];

fn check_mig(gpu: &Gpu) -> Outcome {
    if gpu.identity().has_mig() { Ok(()) } else { Err(Code::NOT_SUPPORTED) }
}

/// Where MIG is off, there are no instances to ask for.
fn check_divided(gpu: &Gpu) -> Outcome {
    if gpu.machine().world.is_divided(gpu.index, gpu.elapsed_ms) { Ok(()) } else { Err(Code::NOT_SUPPORTED) }
}

/// A profile by its number.
fn numbered(gpu: &Gpu, number: c_uint) -> Result<&'static Profile, Code> {
    check_mig(gpu)?;
    PROFILES.iter().find(|profile| profile.number == number).ok_or(Code::NOT_SUPPORTED)
}

/// A profile by its id.
fn by_id(gpu: &Gpu, id: c_uint) -> Result<&'static Profile, Code> {
    check_mig(gpu)?;
    PROFILES.iter().find(|profile| profile.id == id).ok_or(Code::INVALID_ARGUMENT)
}

/// The profile of an instance: the first of its size.
fn of(instance: &MigState) -> &'static Profile {
    PROFILES.iter().find(|profile| profile.slices == instance.slices).unwrap_or(&PROFILES[0])
}

/// The instances, each with where it begins: one behind the other.
fn placed(gpu: &Gpu) -> Vec<(MigState, c_uint)> {
    let mut next = 0;
    let place = |instance: &MigState| {
        let start = next;
        next += instance.memory_eighths();
        (instance.clone(), start)
    };
    gpu.state().mig.iter().map(place).collect()
}

/// How many more fit.
fn capacity(gpu: &Gpu, profile: &Profile) -> c_uint {
    let there = placed(gpu);
    let slices: c_uint = there.iter().map(|(instance, _)| instance.slices).sum();
    let eighths: c_uint = there.iter().map(|(instance, _)| instance.memory_eighths()).sum();
    let fit =
        (MigState::MOST.saturating_sub(slices) / profile.slices).min(8_u32.saturating_sub(eighths) / profile.eighths);
    fit.min(profile.most)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlDeviceGetGpuInstanceProfileInfo(
    handle: nvmlDevice_t,
    number: c_uint,
    info: *mut nvmlGpuInstanceProfileInfo_t,
) -> nvmlReturn_t {
    device("nvmlDeviceGetGpuInstanceProfileInfo", handle, |gpu| {
        let own = numbered(gpu, number)?;
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
            ofaCount: own.ofa,
            memorySizeMB: own.memory_mib,
        };
        // SAFETY: NVML's contract: the pointer is null or may be written.
        unsafe { put(info, answer) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlDeviceGetGpuInstanceProfileInfoV(
    handle: nvmlDevice_t,
    number: c_uint,
    info: *mut nvmlGpuInstanceProfileInfo_v2_t,
) -> nvmlReturn_t {
    device("nvmlDeviceGetGpuInstanceProfileInfoV", handle, |gpu| {
        // SAFETY: NVML's contract: the pointer is null or points at a structure with its version filled in.
        let [info] = unsafe { items(info, 1) }? else { return Err(Code::INVALID_ARGUMENT) };
        if info.version != version_of::<nvmlGpuInstanceProfileInfo_v2_t>(2) {
            return Err(Code::ARGUMENT_VERSION_MISMATCH);
        }
        let own = numbered(gpu, number)?;
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
            ofaCount: own.ofa,
            memorySizeMB: own.memory_mib,
            name: padded(own.name),
        };
        Ok(())
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlDeviceGetGpuInstanceRemainingCapacity(
    handle: nvmlDevice_t,
    id: c_uint,
    count: *mut c_uint,
) -> nvmlReturn_t {
    device("nvmlDeviceGetGpuInstanceRemainingCapacity", handle, |gpu| {
        // SAFETY: NVML's contract: the pointer is null or may be written.
        unsafe { put(count, capacity(gpu, by_id(gpu, id)?)) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlDeviceGetGpuInstancePossiblePlacements_v2(
    handle: nvmlDevice_t,
    id: c_uint,
    places: *mut nvmlGpuInstancePlacement_t,
    count: *mut c_uint,
) -> nvmlReturn_t {
    device("nvmlDeviceGetGpuInstancePossiblePlacements_v2", handle, |gpu| {
        let own = by_id(gpu, id)?;
        let place = |at| nvmlGpuInstancePlacement_t { start: at * own.eighths, size: own.eighths };
        // SAFETY: NVML's contract: `count` may be written, and `places` is null or has room for all.
        unsafe { put_all(places, count, (0..own.places).map(place).collect()) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlDeviceGetGpuInstances(
    handle: nvmlDevice_t,
    id: c_uint,
    instances: *mut nvmlGpuInstance_t,
    count: *mut c_uint,
) -> nvmlReturn_t {
    device("nvmlDeviceGetGpuInstances", handle, |gpu| {
        let own = by_id(gpu, id)?;
        check_divided(gpu)?;
        let there = placed(gpu).into_iter().filter(|(instance, _)| of(instance).id == own.id);
        let handles = there.map(|(instance, _)| pack(gpu.index, instance.instance.gpu_instance)).collect();
        // SAFETY: NVML's contract: `count` may be written, and `instances` has room for all.
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
        check_divided(gpu)?;
        find(gpu, id).map_err(|_| Code::NOT_FOUND)?;
        // SAFETY: NVML's contract: the pointer is null or may be written.
        unsafe { put(instance, pack(gpu.index, id)) }
    })
}

/// What C holds for an instance: the number of the GPU and its own, one higher, as no handle is null.
fn pack<T>(gpu: c_uint, instance: c_uint) -> *mut T {
    ptr::without_provenance_mut(((gpu << 8 | instance) + 1) as usize)
}

/// Asks about the instance behind a handle.
fn within<T>(
    function: &'static str,
    handle: *mut T,
    body: impl FnOnce(&Gpu, &MigState, c_uint) -> Outcome,
) -> nvmlReturn_t {
    let number = handle.addr().wrapping_sub(1) as c_uint;
    let valid = if handle.is_null() { Err(Code::INVALID_ARGUMENT) } else { Ok(number >> 8) };
    lookup(
        function,
        |_| valid,
        |gpu| {
            let (instance, start) = find(gpu, number & 0xFF)?;
            body(gpu, &instance, start)
        },
    )
}

/// An instance by its id.
fn find(gpu: &Gpu, id: c_uint) -> Result<(MigState, c_uint), Code> {
    let there = placed(gpu).into_iter().find(|(instance, _)| instance.instance.gpu_instance == id);
    there.ok_or(Code::INVALID_ARGUMENT)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlGpuInstanceGetInfo(
    instance: nvmlGpuInstance_t,
    info: *mut nvmlGpuInstanceInfo_t,
) -> nvmlReturn_t {
    within("nvmlGpuInstanceGetInfo", instance, |gpu, own, start| {
        let answer = nvmlGpuInstanceInfo_t {
            device: gpu.handle(),
            id: own.instance.gpu_instance,
            profileId: of(own).id,
            placement: nvmlGpuInstancePlacement_t { start, size: own.memory_eighths() },
        };
        // SAFETY: NVML's contract: the pointer is null or may be written.
        unsafe { put(info, answer) }
    })
}

/// A profile of a compute instance that fits: its slices.
fn fitting(own: &MigState, number: c_uint) -> Result<c_uint, Code> {
    let slices = COMPUTE_SLICES.get(number as usize).ok_or(Code::INVALID_ARGUMENT)?;
    if *slices <= own.slices { Ok(*slices) } else { Err(Code::NOT_SUPPORTED) }
}

fn compute_profile(own: &MigState, number: c_uint) -> Result<nvmlComputeInstanceProfileInfo_t, Code> {
    let slices = fitting(own, number)?;
    Ok(nvmlComputeInstanceProfileInfo_t {
        id: number,
        sliceCount: slices,
        instanceCount: own.slices / slices,
        multiprocessorCount: own.multiprocessors / own.slices * slices,
        sharedCopyEngineCount: own.copy_engines,
        sharedDecoderCount: own.decoders,
        sharedEncoderCount: 0,
        sharedJpegCount: own.decoders,
        sharedOfaCount: of(own).ofa,
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlGpuInstanceGetComputeInstanceProfileInfo(
    instance: nvmlGpuInstance_t,
    number: c_uint,
    _engines: c_uint,
    info: *mut nvmlComputeInstanceProfileInfo_t,
) -> nvmlReturn_t {
    within("nvmlGpuInstanceGetComputeInstanceProfileInfo", instance, |_, own, _| {
        // SAFETY: NVML's contract: the pointer is null or may be written.
        unsafe { put(info, compute_profile(own, number)?) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlGpuInstanceGetComputeInstanceProfileInfoV(
    instance: nvmlGpuInstance_t,
    number: c_uint,
    _engines: c_uint,
    info: *mut nvmlComputeInstanceProfileInfo_v2_t,
) -> nvmlReturn_t {
    within("nvmlGpuInstanceGetComputeInstanceProfileInfoV", instance, |_, own, _| {
        // SAFETY: NVML's contract: the pointer is null or points at a structure with its version filled in.
        let [info] = unsafe { items(info, 1) }? else { return Err(Code::INVALID_ARGUMENT) };
        if info.version != version_of::<nvmlComputeInstanceProfileInfo_v2_t>(2) {
            return Err(Code::ARGUMENT_VERSION_MISMATCH);
        }
        let profile = compute_profile(own, number)?;
        *info = nvmlComputeInstanceProfileInfo_v2_t {
            version: info.version,
            id: profile.id,
            sliceCount: profile.sliceCount,
            instanceCount: profile.instanceCount,
            multiprocessorCount: profile.multiprocessorCount,
            sharedCopyEngineCount: profile.sharedCopyEngineCount,
            sharedDecoderCount: profile.sharedDecoderCount,
            sharedEncoderCount: profile.sharedEncoderCount,
            sharedJpegCount: profile.sharedJpegCount,
            sharedOfaCount: profile.sharedOfaCount,
            name: compute_name(own, profile.sliceCount),
        };
        Ok(())
    })
}

/// A part of an instance says how large it is before the instance's own name.
fn compute_name<const N: usize>(own: &MigState, slices: c_uint) -> [c_char; N] {
    if slices == own.slices {
        padded(&format!("MIG {}", own.profile))
    } else {
        padded(&format!("MIG {slices}c.{}", own.profile))
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlGpuInstanceGetComputeInstanceRemainingCapacity(
    instance: nvmlGpuInstance_t,
    id: c_uint,
    count: *mut c_uint,
) -> nvmlReturn_t {
    within("nvmlGpuInstanceGetComputeInstanceRemainingCapacity", instance, |_, own, _| {
        // The one that there is takes all.
        fitting(own, id)?;
        // SAFETY: NVML's contract: the pointer is null or may be written.
        unsafe { put(count, 0) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlGpuInstanceGetComputeInstancePossiblePlacements(
    instance: nvmlGpuInstance_t,
    id: c_uint,
    places: *mut nvmlComputeInstancePlacement_t,
    count: *mut c_uint,
) -> nvmlReturn_t {
    within("nvmlGpuInstanceGetComputeInstancePossiblePlacements", instance, |_, own, _| {
        let slices = fitting(own, id)?;
        let place = |at| nvmlComputeInstancePlacement_t { start: at * slices, size: slices };
        // SAFETY: NVML's contract: `count` may be written, and `places` is null or has room for all.
        unsafe { put_all(places, count, (0..own.slices / slices).map(place).collect()) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlGpuInstanceGetComputeInstances(
    instance: nvmlGpuInstance_t,
    id: c_uint,
    instances: *mut nvmlComputeInstance_t,
    count: *mut c_uint,
) -> nvmlReturn_t {
    within("nvmlGpuInstanceGetComputeInstances", instance, |gpu, own, _| {
        let whole = fitting(own, id)? == own.slices;
        let all = if whole { vec![pack(gpu.index, own.instance.gpu_instance)] } else { Vec::new() };
        // SAFETY: NVML's contract: `count` may be written, and `instances` has room for all.
        unsafe { put_all(instances, count, all) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlComputeInstanceGetInfo_v2(
    instance: nvmlComputeInstance_t,
    info: *mut nvmlComputeInstanceInfo_t,
) -> nvmlReturn_t {
    within("nvmlComputeInstanceGetInfo_v2", instance, |gpu, own, _| {
        let number = COMPUTE_SLICES.iter().position(|slices| *slices == own.slices).unwrap_or(0);
        let answer = nvmlComputeInstanceInfo_t {
            device: gpu.handle(),
            gpuInstance: pack(gpu.index, own.instance.gpu_instance),
            id: own.instance.compute_instance,
            profileId: number as c_uint,
            placement: nvmlComputeInstancePlacement_t { start: 0, size: own.slices },
        };
        // SAFETY: NVML's contract: the pointer is null or may be written.
        unsafe { put(info, answer) }
    })
}

/// Writes a list into room that is said to be enough, and its length; only that where there is no room.
///
/// # Safety
/// `count` is null or may be written, and `to` is null or has room for all.
unsafe fn put_all<T>(to: *mut T, count: *mut c_uint, all: Vec<T>) -> Outcome {
    let mut room = all.len() as c_uint;
    // SAFETY: by this function's own condition.
    unsafe { put(count, room) }?;
    if to.is_null() {
        return Ok(());
    }
    // SAFETY: by this function's own condition.
    unsafe { put_list(to, &raw mut room, all) }
}
