use std::{ffi::c_uint, thread, time::Duration};

use gpumon_probe::vendor::sim::Counters;
use nvml_wrapper_sys::bindings::{
    nvmlPcieUtilCounter_enum_NVML_PCIE_UTIL_RX_BYTES as RX,
    nvmlPcieUtilCounter_enum_NVML_PCIE_UTIL_TX_BYTES as TX, nvmlPcieUtilCounter_t,
};

use super::exports;
use crate::code::Code;

/// The time for which a call observes the link. The caller waits meanwhile.
const WINDOW: Duration = Duration::from_millis(20);

exports! {
    fn nvmlDeviceGetPcieThroughput(device |gpu|, counter: nvmlPcieUtilCounter_t) -> c_uint {
        let of: fn(Counters) -> f64 = match counter {
            TX => |counters| counters.pcie_tx_bytes_per_second,
            RX => |counters| counters.pcie_rx_bytes_per_second,
            _ => return Err(Code::INVALID_ARGUMENT),
        };
        let (begin, counters) = (gpu.total_activity(), gpu.state().counters);
        thread::sleep(WINDOW);
        let done = begin.and_then(|begin| gpu.total_activity()?.activity_since(&begin));
        let bytes_per_second = of(done.map_or(counters, |done| done.counters));
        Ok((bytes_per_second / 1000.0) as c_uint)
    }
}
