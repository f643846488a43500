//! Device memory.

use gpumon_probe::source::sim::GpuState;
use nvml_wrapper_sys::bindings::{nvmlBAR1Memory_t, nvmlDevice_t, nvmlMemory_t, nvmlMemory_v2_t, nvmlReturn_t};

use super::{one_value, version_of};
use crate::{call::device, code::Code, out};

/// The second version of the structure.
const MEMORY_V2: u32 = version_of::<nvmlMemory_v2_t>(2);

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
    fn nvmlDeviceGetBAR1MemoryInfo(nvmlBAR1Memory_t) = |gpu| {
        let used = gpu.state().bar1_used_bytes;
        Ok(nvmlBAR1Memory_t { bar1Total: GpuState::BAR1_BYTES, bar1Free: GpuState::BAR1_BYTES - used, bar1Used: used })
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
