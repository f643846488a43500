//! Device memory.

use gpumon_probe::vendor::sim::GpuState;
use nvml_wrapper_sys::bindings::{nvmlBAR1Memory_t, nvmlDevice_t, nvmlMemory_t, nvmlMemory_v2_t, nvmlReturn_t};

use super::{one_value, version_of};
use crate::{
    call::{Gpu, part},
    code::Code,
    out,
};

/// The second version of the structure.
const MEMORY_V2: u32 = version_of::<nvmlMemory_v2_t>(2);

one_value! {
    // There is none where confidential computing is off.
    fn nvmlDeviceGetConfComputeProtectedMemoryUsage(nvmlMemory_t) = |_| Ok(nvmlMemory_t { total: 0, free: 0, used: 0 });
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlDeviceGetBAR1MemoryInfo(handle: nvmlDevice_t, memory: *mut nvmlBAR1Memory_t) -> nvmlReturn_t {
    part("nvmlDeviceGetBAR1MemoryInfo", handle, |gpu| {
        let (total, used) = if gpu.instance.is_some() {
            let own = gpu.mig_device()?;
            // A part gets as many eighths as of the memory, and does not say what of it is used.
            (GpuState::BAR1_BYTES / 8 * u64::from(own.memory_eighths()), 0)
        } else {
            (GpuState::BAR1_BYTES, gpu.state().bar1_used_bytes)
        };
        // SAFETY: NVML's contract: the pointer is null or may be written.
        unsafe { out::put(memory, nvmlBAR1Memory_t { bar1Total: total, bar1Free: total - used, bar1Used: used }) }
    })
}

/// How memory is shared out.
struct Shares {
    total: u64,
    reserved: u64,
    used: u64,
}

/// The memory of a GPU or a MIG device.
fn shares(gpu: &Gpu) -> Result<Shares, Code> {
    if gpu.instance.is_some() {
        let own = gpu.mig_device()?;
        return Ok(Shares { total: own.memory_total_bytes, reserved: 0, used: own.memory_used_bytes });
    }
    let state = gpu.state();
    let (total, reserved) = (state.memory_total_bytes, state.memory_reserved_bytes);
    Ok(Shares { total, reserved, used: state.memory_used_bytes })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlDeviceGetMemoryInfo(handle: nvmlDevice_t, memory: *mut nvmlMemory_t) -> nvmlReturn_t {
    part("nvmlDeviceGetMemoryInfo", handle, |gpu| {
        let Shares { total, reserved, used } = shares(gpu)?;
        // The first version has no field for what the driver keeps and counts it as used.
        let used = used + reserved;
        // SAFETY: NVML's contract: the pointer is null or may be written.
        unsafe { out::put(memory, nvmlMemory_t { total, free: total.saturating_sub(used), used }) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlDeviceGetMemoryInfo_v2(handle: nvmlDevice_t, memory: *mut nvmlMemory_v2_t) -> nvmlReturn_t {
    part("nvmlDeviceGetMemoryInfo_v2", handle, |gpu| {
        // SAFETY: NVML's contract: the pointer is null or points at a structure with its version filled in.
        let [memory] = unsafe { out::items(memory, 1) }? else { return Err(Code::INVALID_ARGUMENT) };
        if memory.version != MEMORY_V2 {
            return Err(Code::ARGUMENT_VERSION_MISMATCH);
        }
        let Shares { total, reserved, used } = shares(gpu)?;
        (memory.total, memory.reserved, memory.used) = (total, reserved, used);
        memory.free = total.saturating_sub(used + reserved);
        Ok(())
    })
}
