//! What each query about the machine asks the library.

use super::{
    links,
    raw::{self, Numbers, function as f, numbers, text},
};
use crate::vendor::nvml::query::{Answer, SystemQuery as Q, Value};

pub(super) fn answer(library: &raw::Library, query: Q) -> Answer {
    match query {
        Q::DriverVersion => library.system_text(&f::DRIVER_VERSION).map(Value::Text),
        Q::NvmlVersion => library.system_text(&f::NVML_VERSION).map(Value::Text),
        Q::CudaVersion => library.system(&f::CUDA_VERSION).map(Value::number),
        Q::DeviceCount => library.system(&f::DEVICE_COUNT).map(Value::number),
        Q::ExcludedDeviceCount => library.system(&f::EXCLUDED_COUNT).map(Value::number),
        Q::ExcludedDevice(index) => {
            let device = library.system_of(&f::EXCLUDED_DEVICE, index)?;
            Ok(Value::Text(format!(
                "{}, {}",
                text(&device.pciInfo.busId),
                text(&device.uuid)
            )))
        }
        Q::ProcessName(pid) => library.process_name(pid).map(Value::Text),
        Q::VgpuDriverCapability(capability) => library
            .system_of(&f::VGPU_DRIVER_CAPABILITY, capability)
            .map(Value::number),
        Q::NvlinkBandwidthMode => library.system(&f::NVLINK_BANDWIDTH_MODE).map(Value::number),
        Q::UnitCount => library.system(&f::UNIT_COUNT).map(Value::number),
        Q::ConfComputeState => library.system(&f::CONF_COMPUTE_STATE).map(one),
        Q::ConfComputeCapabilities => library.system(&f::CONF_COMPUTE_CAPABILITIES).map(one),
        Q::ConfComputeReady => library.system(&f::CONF_COMPUTE_READY).map(Value::number),
        Q::ConfComputeKeyRotation => library.system(&f::CONF_COMPUTE_KEY_ROTATION).map(one),
        Q::ConfComputeSettings => library.system(&f::CONF_COMPUTE_SETTINGS).map(one),
        Q::DrainState(domain, bus, device) => {
            library.drain_state(domain, bus, device).map(Value::number)
        }
        Q::GpusNearCpu(cpu) => links::indices(library, &library.gpus_near_cpu(cpu)?),
    }
}

fn one(value: impl Numbers) -> Value {
    numbers([value])
}
