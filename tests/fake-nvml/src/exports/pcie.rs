//! The PCI Express link.

use std::{ffi::c_uint, thread, time::Duration};

use gpumon_probe::vendor::sim::{Counters, GpuIdentity};
use nvml_wrapper_sys::bindings::{
    nvmlBridgeChipHierarchy_t, nvmlPcieUtilCounter_enum_NVML_PCIE_UTIL_RX_BYTES as RX,
    nvmlPcieUtilCounter_enum_NVML_PCIE_UTIL_TX_BYTES as TX, nvmlPcieUtilCounter_t,
};

use super::exports;
use crate::code::Code;

/// The driver looks at the link for this long, and the caller waits.
const WINDOW: Duration = Duration::from_millis(20);

exports! {
    fn nvmlDeviceGetCurrPcieLinkGeneration(device |gpu|) -> c_uint { Ok(gpu.state().pcie_generation) }
    fn nvmlDeviceGetCurrPcieLinkWidth(device |gpu|) -> c_uint { Ok(gpu.state().pcie_width) }
    fn nvmlDeviceGetMaxPcieLinkGeneration(device |_|) -> c_uint { Ok(GpuIdentity::PCIE_GENERATION) }
    fn nvmlDeviceGetGpuMaxPcieLinkGeneration(device |_|) -> c_uint { Ok(GpuIdentity::PCIE_GENERATION) }
    // Only boards with two GPUs had such chips.
    fn nvmlDeviceGetBridgeChipInfo(device |_|) -> nvmlBridgeChipHierarchy_t { Err(Code::NOT_SUPPORTED) }
    fn nvmlDeviceGetMaxPcieLinkWidth(device |_|) -> c_uint { Ok(GpuIdentity::PCIE_WIDTH) }
    fn nvmlDeviceGetPcieReplayCounter(device |gpu|) -> c_uint { Ok(gpu.wear().pcie_replays as c_uint) }
    fn nvmlDeviceGetPcieThroughput(device |gpu|, counter: nvmlPcieUtilCounter_t) -> c_uint {
        let of: fn(Counters) -> f64 = match counter {
            TX => |counters| counters.pcie_tx_bytes_per_second,
            RX => |counters| counters.pcie_rx_bytes_per_second,
            _ => return Err(Code::INVALID_ARGUMENT),
        };
        let (begin, counters) = (gpu.moment(), gpu.state().counters);
        thread::sleep(WINDOW);
        let done = begin.and_then(|begin| gpu.moment()?.since(&begin));
        let bytes_per_second = of(done.map_or(counters, |done| done.counters));
        Ok((bytes_per_second / 1000.0) as c_uint)
    }
}
