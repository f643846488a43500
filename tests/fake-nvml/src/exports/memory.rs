//! Device memory.

use std::mem::size_of;

use nvml_wrapper_sys::bindings::{nvmlBAR1Memory_t, nvmlDevice_t, nvmlMemory_t, nvmlMemory_v2_t, nvmlReturn_t};

use super::one_value;
use crate::{call::device, code::Code, out};

/// `NVML_STRUCT_VERSION(Memory, 2)`.
const MEMORY_V2: u32 = size_of::<nvmlMemory_v2_t>() as u32 | 2 << 24;
/// The window through which the host reaches an H200's memory, and what is used of it.
const BAR1_BYTES: u64 = 262_144 << 20;
const BAR1_USED_BYTES: u64 = 1 << 20;

one_value! {
    // The first version has no field for what the driver keeps and counts it as used.
    fn nvmlDeviceGetMemoryInfo(nvmlMemory_t) = |gpu| {
        let state = gpu.state();
        Ok(nvmlMemory_t {
            total: state.memory_total_bytes,
            free: state.memory_free_bytes,
            used: state.memory_used_bytes + state.memory_reserved_bytes,
        })
    };
    fn nvmlDeviceGetBAR1MemoryInfo(nvmlBAR1Memory_t) = |_| {
        Ok(nvmlBAR1Memory_t {
            bar1Total: BAR1_BYTES,
            bar1Free: BAR1_BYTES - BAR1_USED_BYTES,
            bar1Used: BAR1_USED_BYTES,
        })
    };
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlDeviceGetMemoryInfo_v2(handle: nvmlDevice_t, memory: *mut nvmlMemory_v2_t) -> nvmlReturn_t {
    device("nvmlDeviceGetMemoryInfo_v2", handle, |gpu| {
        // SAFETY: NVML's contract: the pointer is null or points at a structure with its version filled in.
        let [memory] = unsafe { out::items(memory, 1) }? else { return Err(Code::INVALID_ARGUMENT) };
        if memory.version != MEMORY_V2 {
            return Err(Code::ARGUMENT_VERSION_MISMATCH);
        }
        let state = gpu.state();
        memory.total = state.memory_total_bytes;
        memory.reserved = state.memory_reserved_bytes;
        memory.free = state.memory_free_bytes;
        memory.used = state.memory_used_bytes;
        Ok(())
    })
}
