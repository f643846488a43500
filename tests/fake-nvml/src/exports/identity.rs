//! The driver's index of a GPU, and addresses on the PCI bus.

use std::ffi::{c_char, c_uint};

use nvml_wrapper_sys::bindings::nvmlPciInfo_t;

use super::exports;
use crate::code::Code;

exports! {
    fn nvmlDeviceGetIndex(device |gpu|) -> c_uint {
        let index = gpu.machine().found.iter().position(|found| *found == gpu.index);
        index.map(|index| index as c_uint).ok_or(Code::NOT_FOUND)
    }
}

/// Returns the PCI information of a device at an address: domain, bus and device.
pub(crate) fn make_pci_info(
    (domain, bus, device): (u32, u32, u32),
    device_id: u32,
    subsystem_id: u32,
) -> nvmlPciInfo_t {
    let bus_id = format!("{domain:08X}:{bus:02X}:{device:02X}.0");
    nvmlPciInfo_t {
        // In the legacy format, the domain has four digits.
        busIdLegacy: to_padded_c_array(&bus_id[4..]),
        domain,
        bus,
        device,
        pciDeviceId: device_id,
        pciSubSystemId: subsystem_id,
        busId: to_padded_c_array(&bus_id),
    }
}

/// Returns a text as a C array, padded with NULs.
pub(crate) fn to_padded_c_array<const N: usize>(text: &str) -> [c_char; N] {
    let mut array = [0; N];
    for (to, byte) in array[..N - 1].iter_mut().zip(text.bytes()) {
        // A C character may be signed or unsigned; the names are ASCII.
        *to = c_char::try_from(byte).unwrap_or(0);
    }
    array
}
