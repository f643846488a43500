//! The PCI Express link.

use std::{ffi::c_uint, thread, time::Duration};

use gpumon_probe::vendor::sim::{Counters, GpuIdentity};
use nvml_wrapper_sys::bindings::{
    nvmlBridgeChipHierarchy_t, nvmlDevice_t, nvmlPcieUtilCounter_enum_NVML_PCIE_UTIL_RX_BYTES as RX,
    nvmlPcieUtilCounter_enum_NVML_PCIE_UTIL_TX_BYTES as TX, nvmlPcieUtilCounter_t, nvmlReturn_t,
};

use super::one_value;
use crate::{call::device, code::Code, out::put};

/// The driver looks at the link for this long, and the caller waits.
const WINDOW: Duration = Duration::from_millis(20);

one_value! {
    fn nvmlDeviceGetCurrPcieLinkGeneration(c_uint) = |gpu| Ok(gpu.state().pcie_generation);
    fn nvmlDeviceGetCurrPcieLinkWidth(c_uint) = |gpu| Ok(gpu.state().pcie_width);
    fn nvmlDeviceGetMaxPcieLinkGeneration(c_uint) = |_| Ok(GpuIdentity::PCIE_GENERATION);
    fn nvmlDeviceGetGpuMaxPcieLinkGeneration(c_uint) = |_| Ok(GpuIdentity::PCIE_GENERATION);
    // Only boards with two GPUs had such chips.
    fn nvmlDeviceGetBridgeChipInfo(nvmlBridgeChipHierarchy_t) = |_| Err(Code::NOT_SUPPORTED);
    fn nvmlDeviceGetMaxPcieLinkWidth(c_uint) = |_| Ok(GpuIdentity::PCIE_WIDTH);
    fn nvmlDeviceGetPcieReplayCounter(c_uint) = |gpu| Ok(gpu.wear().pcie_replays as c_uint);
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlDeviceGetPcieThroughput(
    handle: nvmlDevice_t,
    counter: nvmlPcieUtilCounter_t,
    kilobytes_per_second: *mut c_uint,
) -> nvmlReturn_t {
    device("nvmlDeviceGetPcieThroughput", handle, |gpu| {
        let of: fn(Counters) -> f64 = match counter {
            TX => |counters| counters.pcie_tx_bytes_per_second,
            RX => |counters| counters.pcie_rx_bytes_per_second,
            _ => return Err(Code::INVALID_ARGUMENT),
        };
        let (begin, counters) = (gpu.moment(), gpu.state().counters);
        thread::sleep(WINDOW);
        let done = begin.and_then(|begin| gpu.moment()?.since(&begin));
        let bytes_per_second = of(done.map_or(counters, |done| done.counters));
        // SAFETY: NVML's contract: the pointer is null or may be written.
        unsafe { put(kilobytes_per_second, (bytes_per_second / 1000.0) as c_uint) }
    })
}
