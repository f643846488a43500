//! The CPUs and memory near a GPU.

use std::ffi::{c_uint, c_ulong};

use gpumon_probe::vendor::sim::Machine;
use nvml_wrapper_sys::bindings::{nvmlAffinityScope_t, nvmlDevice_t, nvmlReturn_t};

use crate::{
    call::{Gpu, device, encode_handle, system},
    code::{Code, Outcome},
    given,
    out::{output_items_mut, put_list},
};

/// The number of CPUs of a socket, which is a NUMA node. The CPUs of two sockets fit into one word.
const CPUS_PER_SOCKET: u32 = 32;

/// Returns the socket of a GPU.
fn gpu_socket(gpu: &Gpu) -> u32 {
    gpu.identity().numa_node
}

/// Writes a set that fits into one word.
///
/// # Safety
/// `words` is null or points to `size` words that may be written.
unsafe fn write_one_word_set(words: *mut c_ulong, size: c_uint, first: c_ulong) -> Outcome {
    // SAFETY: by this function's contract, there are `size` words.
    let words = unsafe { output_items_mut(words, size as usize) }?;
    words.fill(0);
    words[0] = first;
    Ok(())
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlDeviceGetCpuAffinity(
    handle: nvmlDevice_t,
    size: c_uint,
    words: *mut c_ulong,
) -> nvmlReturn_t {
    device("nvmlDeviceGetCpuAffinity", handle, |gpu| {
        let cpus = given::answer_value_or_else(
            given::device("nvmlDeviceGetCpuAffinity", handle, &[]),
            || Ok(((1 << CPUS_PER_SOCKET) - 1) << (gpu_socket(gpu) * CPUS_PER_SOCKET)),
        )?;
        // SAFETY: by NVML's contract, there are `size` words.
        unsafe { write_one_word_set(words, size, cpus) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlDeviceGetMemoryAffinity(
    handle: nvmlDevice_t,
    size: c_uint,
    words: *mut c_ulong,
    _scope: nvmlAffinityScope_t,
) -> nvmlReturn_t {
    // SAFETY: by NVML's contract, there are `size` words.
    device("nvmlDeviceGetMemoryAffinity", handle, |gpu| unsafe {
        write_one_word_set(words, size, 1 << gpu_socket(gpu))
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlSystemGetTopologyGpuSet(
    cpu: c_uint,
    count: *mut c_uint,
    devices: *mut nvmlDevice_t,
) -> nvmlReturn_t {
    system("nvmlSystemGetTopologyGpuSet", |session| {
        let Machine { world, found, .. } = &session.machine;
        if cpu >= 2 * CPUS_PER_SOCKET {
            return Err(Code::INVALID_ARGUMENT);
        }
        let is_near = |index: &u32| world.gpu_identity(*index).numa_node == cpu / CPUS_PER_SOCKET;
        let near = found.iter().copied().filter(is_near);
        // SAFETY: by NVML's contract, `count` may be read and written, and `devices` is null or has
        // room for `*count` items.
        unsafe {
            write_gpu_set(
                devices,
                count,
                near.map(|index| encode_handle(index, None)).collect(),
            )
        }
    })
}

/// Writes as many GPUs of a set as there is room for in `*count` items. If `*count` is 0, it only
/// writes the number of GPUs.
///
/// # Safety
/// `count` is null or may be read and written, and `devices` is null or has room for `*count`
/// items.
pub(super) unsafe fn write_gpu_set(
    devices: *mut nvmlDevice_t,
    count: *mut c_uint,
    mut found: Vec<nvmlDevice_t>,
) -> Outcome {
    // SAFETY: by this function's contract, `count` is null or may be written.
    let room = unsafe { count.as_mut() }.ok_or(Code::INVALID_ARGUMENT)?;
    if *room == 0 {
        *room = found.len() as c_uint;
        return Ok(());
    }
    found.truncate(*room as usize);
    // SAFETY: the caller upholds this function's safety contract.
    unsafe { put_list(devices, count, found) }
}
