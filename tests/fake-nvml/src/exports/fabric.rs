//! Links that lead out of the machine's own bus: the `NVLink` fabric, and the link to a Grace CPU.

use std::ptr;

use nvml_wrapper_sys::bindings::{
    NVML_GPU_FABRIC_STATE_COMPLETED as COMPLETED, nvmlDevice_t, nvmlGpuFabricInfo_v2_t,
    nvmlGpuFabricInfo_v3_t, nvmlGpuFabricInfoV_t, nvmlReturn_t,
};

use super::struct_version_field;
use crate::{call::device, code::Code, given};

/// The supported versions of the structure.
const INFO_V2: u32 = struct_version_field::<nvmlGpuFabricInfo_v2_t>(2);
const INFO_V3: u32 = struct_version_field::<nvmlGpuFabricInfo_v3_t>(3);

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlDeviceGetGpuFabricInfoV(
    handle: nvmlDevice_t,
    info: *mut nvmlGpuFabricInfoV_t,
) -> nvmlReturn_t {
    device("nvmlDeviceGetGpuFabricInfoV", handle, |gpu| {
        if info.is_null() {
            return Err(Code::INVALID_ARGUMENT);
        }
        // SAFETY: by NVML's contract, the pointer, which is not null, points to a structure that
        // begins with its version.
        let version = unsafe { ptr::read(info.cast::<u32>()) };
        if version != INFO_V2 && version != INFO_V3 {
            return Err(Code::ARGUMENT_VERSION_MISMATCH);
        }
        let mut answer = given::answer_value_or_else(
            given::device("nvmlDeviceGetGpuFabricInfoV", handle, &[]),
            || {
                let uuid = gpu.machine().world.fabric_uuid(gpu.index);
                Ok(nvmlGpuFabricInfo_v2_t {
                    version: 0,
                    clusterUuid: uuid_bytes(&uuid.ok_or(Code::NOT_SUPPORTED)?),
                    status: 0,
                    cliqueId: 0,
                    state: COMPLETED as u8,
                    healthMask: 0,
                })
            },
        )?;
        answer.version = version;
        // SAFETY: according to its version field, the structure has version 2 or 3. A structure of
        // version 3 begins with the fields of version 2.
        unsafe { ptr::write(info.cast(), answer) };
        if version == INFO_V3 {
            // SAFETY: according to its version field, the structure has version 3, which has this
            // field.
            unsafe { (*info).healthSummary = 0 };
        }
        Ok(())
    })
}

/// Returns the 16 bytes of a UUID.
fn uuid_bytes(uuid: &str) -> [u8; 16] {
    let digits: Vec<u8> = uuid
        .bytes()
        .filter_map(|digit| (digit as char).to_digit(16))
        .map(|digit| digit as u8)
        .collect();
    let mut bytes = [0; 16];
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks(2)) {
        *byte = pair.iter().fold(0, |byte, digit| byte << 4 | digit);
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uuid_is_converted_to_16_bytes() {
        assert_eq!(
            uuid_bytes("00010203-0405-0607-0809-0a0b0c0d0eff")[10..],
            [0x0a, 0x0b, 0x0c, 0x0d, 0x0e, 0xff]
        );
    }
}
