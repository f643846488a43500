//! GPU instances: which there can be, and which there are.

use std::ffi::c_uint;

use nvml_wrapper_sys::bindings::{
    nvmlGpuInstance_t, nvmlGpuInstanceInfo_t, nvmlGpuInstancePlacement_t,
    nvmlGpuInstanceProfileInfo_t, nvmlGpuInstanceProfileInfo_v2_t,
};

use super::{exports, identity::pad_text};
use crate::{
    call::instance_handle,
    code::Code,
    division::{Part, Place, Profile},
};

/// A profile as both structures have it.
macro_rules! described {
    ($type:ident, $own:ident $(, $field:ident: $value:expr)*) => {
        $type {
            id: $own.id,
            isP2pSupported: 0,
            sliceCount: $own.slices,
            instanceCount: $own.most,
            multiprocessorCount: $own.multiprocessors,
            copyEngineCount: $own.copy_engines,
            decoderCount: $own.decoders,
            encoderCount: 0,
            jpegCount: $own.decoders,
            ofaCount: $own.optical_flow_engines,
            memorySizeMB: $own.memory_mib,
            $($field: $value,)*
        }
    };
}

exports! {
    fn nvmlDeviceGetGpuInstanceProfileInfo(device |gpu|, profile: c_uint) -> nvmlGpuInstanceProfileInfo_t {
        let own = Profile::numbered(gpu, profile)?;
        Ok(described!(nvmlGpuInstanceProfileInfo_t, own))
    }
    fn nvmlDeviceGetGpuInstanceProfileInfoV(
        device |gpu|, profile: c_uint
    ) fills info: nvmlGpuInstanceProfileInfo_v2_t, 2 {
        let own = Profile::numbered(gpu, profile)?;
        *info = described!(
            nvmlGpuInstanceProfileInfo_v2_t, own, version: info.version,
            name: pad_text(&format!("MIG {}", own.name))
        );
        Ok(())
    }
    fn nvmlDeviceGetGpuInstances(device |gpu|, profile: c_uint) -> all [nvmlGpuInstance_t] {
        Profile::of(gpu, profile)?;
        let parts = Part::all(gpu)?;
        let own = parts.iter().filter(|part| part.profile.id == profile);
        Ok(own.map(|part| instance_handle(gpu.index, part.id)).collect())
    }
    fn nvmlDeviceGetGpuInstanceById(device |gpu|, id: c_uint) -> nvmlGpuInstance_t {
        let part = Part::of(gpu, id, Code::NOT_FOUND)?;
        Ok(instance_handle(gpu.index, part.id))
    }
    fn nvmlGpuInstanceGetInfo(gpu_instance |gpu, part|) -> nvmlGpuInstanceInfo_t {
        Ok(nvmlGpuInstanceInfo_t {
            device: gpu.handle(),
            id: part.id,
            profileId: part.profile.id,
            placement: placement(part.place),
        })
    }
}

fn placement((start, size): Place) -> nvmlGpuInstancePlacement_t {
    nvmlGpuInstancePlacement_t { start, size }
}
