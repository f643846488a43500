//! Device memory.

use gpumon_probe::vendor::sim::GpuState;
use nvml_wrapper_sys::bindings::{nvmlBAR1Memory_t, nvmlMemory_t, nvmlMemory_v2_t};

use super::exports;
use crate::{call::Gpu, code::Code};

exports! {
    // There is none where confidential computing is off.
    fn nvmlDeviceGetConfComputeProtectedMemoryUsage(device |_|) -> nvmlMemory_t {
        Ok(nvmlMemory_t { total: 0, free: 0, used: 0 })
    }
    fn nvmlDeviceGetBAR1MemoryInfo(part |gpu|) -> nvmlBAR1Memory_t {
        let (total, used) = if gpu.instance.is_some() {
            let own = gpu.mig_device()?;
            // A part gets as many eighths as of the memory, and does not say what of it is used.
            (GpuState::BAR1_BYTES / 8 * u64::from(own.memory_eighths()), 0)
        } else {
            (GpuState::BAR1_BYTES, gpu.state().bar1_used_bytes)
        };
        Ok(nvmlBAR1Memory_t { bar1Total: total, bar1Free: total - used, bar1Used: used })
    }
}

struct Shares {
    total: u64,
    reserved: u64,
    used: u64,
}

fn shares(gpu: &Gpu) -> Result<Shares, Code> {
    if gpu.instance.is_some() {
        let own = gpu.mig_device()?;
        return Ok(Shares {
            total: own.memory_total_bytes,
            reserved: 0,
            used: own.memory_used_bytes,
        });
    }
    let state = gpu.state();
    let (total, reserved) = (state.memory_total_bytes, state.memory_reserved_bytes);
    Ok(Shares {
        total,
        reserved,
        used: state.memory_used_bytes,
    })
}

exports! {
    fn nvmlDeviceGetMemoryInfo(part |gpu|) -> nvmlMemory_t {
        let Shares { total, reserved, used } = shares(gpu)?;
        // The first version has no field for what the driver keeps and counts it as used.
        let used = used + reserved;
        Ok(nvmlMemory_t { total, free: total.saturating_sub(used), used })
    }
    fn nvmlDeviceGetMemoryInfo_v2(part |gpu|) fills memory: nvmlMemory_v2_t, 2 {
        let Shares { total, reserved, used } = shares(gpu)?;
        (memory.total, memory.reserved, memory.used) = (total, reserved, used);
        memory.free = total.saturating_sub(used + reserved);
        Ok(())
    }
}
