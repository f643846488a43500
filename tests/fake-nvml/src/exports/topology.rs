//! Where two GPUs meet.

use gpumon_probe::model::PciPath;
use nvml_wrapper_sys::bindings::{
    nvmlDevice_t, nvmlGpuLevel_enum_NVML_TOPOLOGY_HOSTBRIDGE, nvmlGpuLevel_enum_NVML_TOPOLOGY_INTERNAL,
    nvmlGpuLevel_enum_NVML_TOPOLOGY_MULTIPLE, nvmlGpuLevel_enum_NVML_TOPOLOGY_NODE,
    nvmlGpuLevel_enum_NVML_TOPOLOGY_SINGLE, nvmlGpuLevel_enum_NVML_TOPOLOGY_SYSTEM, nvmlGpuTopologyLevel_t,
    nvmlReturn_t,
};

use crate::{
    call::{device, other},
    out::put,
};

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlDeviceGetTopologyCommonAncestor(
    one: nvmlDevice_t,
    two: nvmlDevice_t,
    level: *mut nvmlGpuTopologyLevel_t,
) -> nvmlReturn_t {
    device("nvmlDeviceGetTopologyCommonAncestor", one, |gpu| {
        let path = gpu.machine().world.path(gpu.index, other(gpu.session, two)?);
        // SAFETY: NVML's contract: the pointer is null or may be written.
        unsafe { put(level, number(path)) }
    })
}

fn number(path: PciPath) -> nvmlGpuTopologyLevel_t {
    match path {
        PciPath::Internal => nvmlGpuLevel_enum_NVML_TOPOLOGY_INTERNAL,
        PciPath::Single => nvmlGpuLevel_enum_NVML_TOPOLOGY_SINGLE,
        PciPath::Multiple => nvmlGpuLevel_enum_NVML_TOPOLOGY_MULTIPLE,
        PciPath::HostBridge => nvmlGpuLevel_enum_NVML_TOPOLOGY_HOSTBRIDGE,
        PciPath::Node => nvmlGpuLevel_enum_NVML_TOPOLOGY_NODE,
        PciPath::System => nvmlGpuLevel_enum_NVML_TOPOLOGY_SYSTEM,
    }
}
