//! The board that a GPU sits on, and the place where that is.

use std::ffi::{c_char, c_uint};

use gpumon_probe::vendor::sim::{Architecture, GpuIdentity};
use nvml_wrapper_sys::bindings::{nvmlPciInfoExt_t, nvmlPdi_t, nvmlPlatformInfo_t};

use super::{
    exports,
    identity::{PCI_DEVICE_ID, PCI_SUBSYSTEM_ID, padded},
};
use crate::{call::Gpu, code::Code};

/// PCI's classes: a display controller; one that draws no picture, or one that does.
const DISPLAY_CONTROLLER: c_uint = 0x03;
const THREE_D: c_uint = 0x02;
const VGA: c_uint = 0x00;

exports! {
    // No other GPU shares its board.
    fn nvmlDeviceGetMultiGpuBoard(device |_|) -> c_uint { Ok(0) }
    fn nvmlDeviceGetBoardId(device |gpu|) -> c_uint { Ok(gpu.identity().pci_bus << 8) }
    fn nvmlDeviceGetModuleId(device |gpu|) -> c_uint { module_id(gpu) }
    // Nobody gave it one.
    fn nvmlDeviceGetHostname_v1(device |_|) -> [c_char; 64] { Err(Code::NOT_SUPPORTED) }
    fn nvmlDeviceGetPciInfoExt(device |gpu|) fills own: nvmlPciInfoExt_t, 1 {
        let identity = gpu.identity();
        *own = nvmlPciInfoExt_t {
            version: own.version,
            domain: 0,
            bus: identity.pci_bus,
            device: 0,
            pciDeviceId: PCI_DEVICE_ID,
            pciSubSystemId: PCI_SUBSYSTEM_ID,
            baseClass: DISPLAY_CONTROLLER,
            subClass: if identity.geforce { VGA } else { THREE_D },
            busId: padded(&identity.pci_bus_id),
        };
        Ok(())
    }
    fn nvmlDeviceGetPdi(device |gpu|) fills own: nvmlPdi_t, 1 {
        own.value = pdi(gpu.identity());
        Ok(())
    }
    fn nvmlDeviceGetPlatformInfo(device |gpu|) fills own: nvmlPlatformInfo_t, 2 {
        *own = nvmlPlatformInfo_t {
            version: own.version,
            // A machine of its own is in no rack whose places have numbers.
            ibGuid: [0; 16],
            chassisSerialNumber: [0; 16],
            slotNumber: 0,
            trayIndex: 0,
            hostId: 1,
            peerType: 0,
            moduleId: module_id(gpu)? as u8,
        };
        Ok(())
    }
}

/// The place of a module on its baseboard, counted from 1. Older boards and cards do not tell one.
fn module_id(gpu: &Gpu) -> Result<c_uint, Code> {
    let identity = gpu.identity();
    let told = identity.architecture >= Architecture::Hopper && !identity.geforce;
    if told {
        Ok(gpu.index + 1)
    } else {
        Err(Code::NOT_SUPPORTED)
    }
}

/// A number that no other GPU has: the end of its UUID.
fn pdi(identity: &GpuIdentity) -> u64 {
    let digits: String = identity
        .uuid
        .chars()
        .filter(char::is_ascii_hexdigit)
        .collect();
    u64::from_str_radix(&digits[digits.len().saturating_sub(16)..], 16).unwrap_or(0)
}
