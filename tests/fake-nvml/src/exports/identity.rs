//! Who a GPU is.

use std::ffi::{c_char, c_int, c_uint};

use nvml_wrapper_sys::bindings::{
    NVML_DEVICE_ARCH_HOPPER, nvmlBrandType_enum_NVML_BRAND_NVIDIA, nvmlBrandType_t, nvmlDevice_t,
    nvmlDeviceArchitecture_t, nvmlPciInfo_t, nvmlReturn_t,
};

use super::{one_text, one_value};
use crate::{
    call::{Gpu, device},
    out::put,
};

/// An H200's device and vendor, and its subsystem.
const PCI_DEVICE_ID: u32 = 0x2335_10DE;
const PCI_SUBSYSTEM_ID: u32 = 0x18BF_10DE;

one_text! {
    fn nvmlDeviceGetName = |gpu| gpu.identity().name;
    fn nvmlDeviceGetUUID = |gpu| gpu.identity().uuid;
    fn nvmlDeviceGetSerial = |gpu| gpu.identity().serial;
    fn nvmlDeviceGetVbiosVersion = |_| "96.00.A5.00.1A".to_owned();
}

one_value! {
    fn nvmlDeviceGetIndex(c_uint) = |gpu| Ok(gpu.index);
    fn nvmlDeviceGetMinorNumber(c_uint) = |gpu| Ok(gpu.index);
    fn nvmlDeviceGetPciInfo_v3(nvmlPciInfo_t) = |gpu| Ok(pci_info(gpu));
    fn nvmlDeviceGetBrand(nvmlBrandType_t) = |_| Ok(nvmlBrandType_enum_NVML_BRAND_NVIDIA);
    fn nvmlDeviceGetArchitecture(nvmlDeviceArchitecture_t) = |_| Ok(NVML_DEVICE_ARCH_HOPPER);
}

fn pci_info(gpu: &Gpu) -> nvmlPciInfo_t {
    let identity = gpu.identity();
    nvmlPciInfo_t {
        // The legacy form has a domain of four digits.
        busIdLegacy: padded(&identity.pci_bus_id[4..]),
        domain: 0,
        bus: identity.pci_bus,
        device: 0,
        pciDeviceId: PCI_DEVICE_ID,
        pciSubSystemId: PCI_SUBSYSTEM_ID,
        busId: padded(&identity.pci_bus_id),
    }
}

/// A text in a C array, with NULs after it.
fn padded<const N: usize>(text: &str) -> [c_char; N] {
    let mut array = [0; N];
    for (to, byte) in array[..N - 1].iter_mut().zip(text.bytes()) {
        // A C character may be signed or not; the names are ASCII.
        *to = c_char::try_from(byte).unwrap_or(0);
    }
    array
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlDeviceGetCudaComputeCapability(
    handle: nvmlDevice_t,
    major: *mut c_int,
    minor: *mut c_int,
) -> nvmlReturn_t {
    // SAFETY: NVML's contract: each pointer is null or may be written.
    device("nvmlDeviceGetCudaComputeCapability", handle, |_| unsafe { put(major, 9).and_then(|()| put(minor, 0)) })
}
