//! The functions about single `NVLinks`.

use std::ffi::{c_uint, c_ulonglong};

use gpumon_probe::vendor::sim::LinkState;
use nvml_wrapper_sys::bindings::{
    nvmlDevice_t, nvmlNvLinkErrorCounter_enum_NVML_NVLINK_ERROR_DL_CRC_DATA as CRC_DATA,
    nvmlNvLinkErrorCounter_enum_NVML_NVLINK_ERROR_DL_CRC_FLIT as CRC_FLIT,
    nvmlNvLinkErrorCounter_enum_NVML_NVLINK_ERROR_DL_ECC_DATA as ECC_DATA,
    nvmlNvLinkErrorCounter_enum_NVML_NVLINK_ERROR_DL_RECOVERY as RECOVERY,
    nvmlNvLinkErrorCounter_enum_NVML_NVLINK_ERROR_DL_REPLAY as REPLAY, nvmlNvLinkErrorCounter_t,
    nvmlNvLinkInfo_t, nvmlPciInfo_t, nvmlReturn_t,
};

use super::{exports, identity::make_pci_info, struct_version_field};
use crate::{
    call::{Gpu, device},
    code::Code,
};

/// The PCI IDs of a switch: device and vendor, and subsystem.
const SWITCH_DEVICE_ID: u32 = 0x22A3_10DE;
const SWITCH_SUBSYSTEM_ID: u32 = 0x1796_10DE;

/// Returns a link of the GPU. A GPU without links does not support the query.
pub(super) fn find_link(gpu: &Gpu, number: c_uint) -> Result<&'static LinkState, Code> {
    if gpu.identity().nvlinks.is_empty() {
        return Err(Code::NOT_SUPPORTED);
    }
    gpu.identity()
        .nvlinks
        .get(number as usize)
        .ok_or(Code::INVALID_ARGUMENT)
}

exports! {
    fn nvmlDeviceGetNvLinkRemotePciInfo_v2(device |gpu|, number: c_uint) -> nvmlPciInfo_t {
        let link = find_link(gpu, number)?;
        Ok(make_pci_info((0, link.remote_bus, 0), SWITCH_DEVICE_ID, SWITCH_SUBSYSTEM_ID))
    }
}

/// The first version of the structure has only two numbers. They are also the first two numbers of
/// the second version.
const INFO_V1: c_uint = struct_version_field::<[c_uint; 2]>(1);
const INFO_V2: c_uint = struct_version_field::<nvmlNvLinkInfo_t>(2);

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlDeviceGetNvLinkInfo(
    handle: nvmlDevice_t,
    info: *mut nvmlNvLinkInfo_t,
) -> nvmlReturn_t {
    device("nvmlDeviceGetNvLinkInfo", handle, |gpu| {
        if info.is_null() {
            return Err(Code::INVALID_ARGUMENT);
        }
        // SAFETY: by NVML's contract, the pointer, which is not null, points to a structure that
        // begins with its version.
        let version = unsafe { info.cast::<c_uint>().read() };
        if version != INFO_V1 && version != INFO_V2 {
            return Err(Code::ARGUMENT_VERSION_MISMATCH);
        }
        find_link(gpu, 0)?;
        // SAFETY: both versions have this field, which states whether the traffic of the links is
        // encrypted.
        unsafe { (&raw mut (*info).isNvleEnabled).write(0) };
        if version == INFO_V2 {
            // SAFETY: this version of the structure has this field, the number of firmware entries.
            unsafe { (&raw mut (*info).firmwareInfo.numValidEntries).write(0) };
        }
        Ok(())
    })
}

exports! {
    fn nvmlDeviceGetNvLinkErrorCounter(device |gpu|, number: c_uint, counter: nvmlNvLinkErrorCounter_t) -> c_ulonglong {
        let link = find_link(gpu, number)?;
        Ok(match counter {
            REPLAY => link.replays,
            RECOVERY => link.recoveries,
            CRC_FLIT => link.crc_errors[0],
            CRC_DATA => link.crc_errors[1],
            ECC_DATA => return Err(Code::NOT_SUPPORTED),
            _ => return Err(Code::INVALID_ARGUMENT),
        })
    }
}
