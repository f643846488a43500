//! Who a GPU is.

use std::ffi::{c_char, c_int, c_uint};

use gpumon_probe::vendor::sim::Architecture;
use nvml_wrapper_sys::bindings::{
    NVML_DEVICE_ARCH_ADA, NVML_DEVICE_ARCH_AMPERE, NVML_DEVICE_ARCH_BLACKWELL,
    NVML_DEVICE_ARCH_HOPPER, NVML_DEVICE_ARCH_PASCAL, NVML_DEVICE_ARCH_TURING,
    NVML_DEVICE_ARCH_VOLTA, nvmlBrandType_enum_NVML_BRAND_GEFORCE as GEFORCE,
    nvmlBrandType_enum_NVML_BRAND_NVIDIA as NVIDIA, nvmlBrandType_enum_NVML_BRAND_TESLA as TESLA,
    nvmlBrandType_t, nvmlDeviceArchitecture_t, nvmlPciInfo_t,
};

use super::exports;
use crate::{call::Gpu, code::Code};

/// An H200's device and vendor, and its subsystem.
pub(super) const PCI_DEVICE_ID: u32 = 0x2335_10DE;
pub(super) const PCI_SUBSYSTEM_ID: u32 = 0x18BF_10DE;

exports! {
    fn nvmlDeviceGetSerial(device |gpu|) -> str { on_a_label(gpu, &gpu.identity().serial) }
    fn nvmlDeviceGetVbiosVersion(device |gpu|) -> str { Ok(&gpu.identity().vbios_version) }
    fn nvmlDeviceGetBoardPartNumber(device |gpu|) -> str { on_a_label(gpu, &gpu.identity().part_number) }
}

/// A board for players has no number that software could read.
fn on_a_label<'a>(gpu: &Gpu, text: &'a str) -> Result<&'a str, Code> {
    if gpu.identity().geforce {
        Err(Code::NOT_SUPPORTED)
    } else {
        Ok(text)
    }
}

exports! {
    fn nvmlDeviceGetIndex(device |gpu|) -> c_uint {
        let index = gpu.machine().found.iter().position(|found| *found == gpu.index);
        index.map(|index| index as c_uint).ok_or(Code::NOT_FOUND)
    }
    fn nvmlDeviceGetMinorNumber(device |gpu|) -> c_uint { Ok(gpu.index) }
    fn nvmlDeviceGetPciInfo_v3(device |gpu|) -> nvmlPciInfo_t { Ok(pci_info(gpu)) }
    fn nvmlDeviceGetBrand(device |gpu|) -> nvmlBrandType_t {
        Ok(match gpu.identity() {
            identity if identity.geforce => GEFORCE,
            identity if identity.name.starts_with("Tesla") => TESLA,
            _ => NVIDIA,
        })
    }
    fn nvmlDeviceGetArchitecture(device |gpu|) -> nvmlDeviceArchitecture_t { Ok(number(gpu.identity().architecture)) }
    fn nvmlDeviceGetNumGpuCores(device |gpu|) -> c_uint { Ok(gpu.identity().cores) }
    fn nvmlDeviceGetMemoryBusWidth(device |gpu|) -> c_uint { Ok(gpu.identity().memory_bus_bits) }
    fn nvmlDeviceGetNumaNodeId(device |gpu|) -> c_uint { Ok(gpu.identity().numa_node) }
}

fn number(architecture: Architecture) -> nvmlDeviceArchitecture_t {
    match architecture {
        Architecture::Pascal => NVML_DEVICE_ARCH_PASCAL,
        Architecture::Volta => NVML_DEVICE_ARCH_VOLTA,
        Architecture::Turing => NVML_DEVICE_ARCH_TURING,
        Architecture::Ampere => NVML_DEVICE_ARCH_AMPERE,
        Architecture::Ada => NVML_DEVICE_ARCH_ADA,
        Architecture::Hopper => NVML_DEVICE_ARCH_HOPPER,
        Architecture::Blackwell => NVML_DEVICE_ARCH_BLACKWELL,
    }
}

fn pci_info(gpu: &Gpu) -> nvmlPciInfo_t {
    let identity = gpu.identity();
    pci_device((0, identity.pci_bus, 0), PCI_DEVICE_ID, PCI_SUBSYSTEM_ID)
}

/// What is in a place: domain, bus and device.
pub(crate) fn pci_device(
    (domain, bus, device): (u32, u32, u32),
    device_id: u32,
    subsystem_id: u32,
) -> nvmlPciInfo_t {
    let bus_id = format!("{domain:08X}:{bus:02X}:{device:02X}.0");
    nvmlPciInfo_t {
        // The legacy form has a domain of four digits.
        busIdLegacy: padded(&bus_id[4..]),
        domain,
        bus,
        device,
        pciDeviceId: device_id,
        pciSubSystemId: subsystem_id,
        busId: padded(&bus_id),
    }
}

exports! {
    fn nvmlDeviceGetName(part |gpu|) -> str {
        Ok(if gpu.instance.is_some() { gpu.mig_device()?.name } else { gpu.identity().name.clone() })
    }
    fn nvmlDeviceGetUUID(part |gpu|) -> str {
        Ok(if gpu.instance.is_some() { gpu.mig_device()?.uuid } else { gpu.identity().uuid.clone() })
    }
}

/// A text in a C array, with NULs after it.
pub(super) fn padded<const N: usize>(text: &str) -> [c_char; N] {
    let mut array = [0; N];
    for (to, byte) in array[..N - 1].iter_mut().zip(text.bytes()) {
        // A C character may be signed or not; the names are ASCII.
        *to = c_char::try_from(byte).unwrap_or(0);
    }
    array
}

exports! {
    fn nvmlDeviceGetCudaComputeCapability(device |gpu|) -> (c_int, c_int) {
        let (of_major, of_minor) = gpu.identity().architecture.compute_capability();
        Ok((of_major.into(), of_minor.into()))
    }
}
