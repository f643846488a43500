//! The common ancestor of two GPUs, and their peer-to-peer capabilities.

use std::ffi::c_uint;

use gpumon_probe::{model::PciPath, vendor::sim::Machine};
use nvml_wrapper_sys::bindings::{
    nvmlDevice_t, nvmlGpuLevel_enum_NVML_TOPOLOGY_HOSTBRIDGE,
    nvmlGpuLevel_enum_NVML_TOPOLOGY_INTERNAL, nvmlGpuLevel_enum_NVML_TOPOLOGY_MULTIPLE,
    nvmlGpuLevel_enum_NVML_TOPOLOGY_NODE, nvmlGpuLevel_enum_NVML_TOPOLOGY_SINGLE,
    nvmlGpuLevel_enum_NVML_TOPOLOGY_SYSTEM,
    nvmlGpuP2PCapsIndex_enum_NVML_P2P_CAPS_INDEX_PCI as PCI,
    nvmlGpuP2PCapsIndex_enum_NVML_P2P_CAPS_INDEX_UNKNOWN as CAPABILITIES, nvmlGpuP2PCapsIndex_t,
    nvmlGpuP2PStatus_enum_NVML_P2P_STATUS_NOT_SUPPORTED as NOT_SUPPORTED,
    nvmlGpuP2PStatus_enum_NVML_P2P_STATUS_OK as OK, nvmlGpuP2PStatus_t, nvmlGpuTopologyLevel_t,
    nvmlReturn_t,
};

use super::{affinity::write_gpu_set, exports};
use crate::{
    call::{device, encode_handle, find_other_gpu},
    code::Code,
};

exports! {
    fn nvmlDeviceGetTopologyCommonAncestor(device |gpu|, two: nvmlDevice_t) -> nvmlGpuTopologyLevel_t {
        let path = gpu.machine().world.path(gpu.index, find_other_gpu(gpu.session, two)?);
        Ok(topology_level(path))
    }
}

fn topology_level(path: PciPath) -> nvmlGpuTopologyLevel_t {
    match path {
        PciPath::Internal => nvmlGpuLevel_enum_NVML_TOPOLOGY_INTERNAL,
        PciPath::Single => nvmlGpuLevel_enum_NVML_TOPOLOGY_SINGLE,
        PciPath::Multiple => nvmlGpuLevel_enum_NVML_TOPOLOGY_MULTIPLE,
        PciPath::HostBridge => nvmlGpuLevel_enum_NVML_TOPOLOGY_HOSTBRIDGE,
        PciPath::Node => nvmlGpuLevel_enum_NVML_TOPOLOGY_NODE,
        PciPath::System => nvmlGpuLevel_enum_NVML_TOPOLOGY_SYSTEM,
    }
}

/// Writes all GPUs whose distance is at most this level.
#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlDeviceGetTopologyNearestGpus(
    from: nvmlDevice_t,
    level: nvmlGpuTopologyLevel_t,
    count: *mut c_uint,
    devices: *mut nvmlDevice_t,
) -> nvmlReturn_t {
    device("nvmlDeviceGetTopologyNearestGpus", from, |gpu| {
        let Machine { world, found, .. } = gpu.machine();
        let others = found.iter().copied().filter(|other| *other != gpu.index);
        let near = others.filter(|other| topology_level(world.path(gpu.index, *other)) <= level);
        // SAFETY: by NVML's contract, `count` may be read and written, and `devices` is null or has
        // room for `*count` items.
        unsafe {
            write_gpu_set(
                devices,
                count,
                near.map(|other| encode_handle(other, None)).collect(),
            )
        }
    })
}

exports! {
    /// Two GPUs with `NVLinks` between them can access each other's memory, but only through these
    /// links and not through PCIe. GPUs without links cannot.
    fn nvmlDeviceGetP2PStatus(
        device |gpu|, two: nvmlDevice_t, capability: nvmlGpuP2PCapsIndex_t
    ) -> nvmlGpuP2PStatus_t {
        let other = find_other_gpu(gpu.session, two)?;
        if capability >= CAPABILITIES {
            return Err(Code::INVALID_ARGUMENT);
        }
        let linked = gpu.machine().world.are_linked(gpu.index, other);
        let through_pcie = capability >= PCI;
        Ok(if linked && !through_pcie { OK } else { NOT_SUPPORTED })
    }
}
