//! Compute instances within GPU instances: which there can be, and which there are.

use std::ffi::c_uint;

use nvml_wrapper_sys::bindings::{
    NVML_COMPUTE_INSTANCE_ENGINE_PROFILE_COUNT, nvmlComputeInstance_t, nvmlComputeInstanceInfo_t,
    nvmlComputeInstancePlacement_t, nvmlComputeInstanceProfileInfo_t,
    nvmlComputeInstanceProfileInfo_v2_t,
};

use super::{exports, identity::pad_text};
use crate::{
    call::{compute_handle, instance_handle},
    code::Code,
    division::{ComputeProfile, Part, Place},
};

/// A profile by its number and by how it shares the engines.
fn asked(part: &Part, profile: c_uint, engines: c_uint) -> Result<ComputeProfile, Code> {
    if engines >= NVML_COMPUTE_INSTANCE_ENGINE_PROFILE_COUNT {
        return Err(Code::INVALID_ARGUMENT);
    }
    ComputeProfile::numbered(part, profile)
}

/// A profile as both structures have it.
macro_rules! described {
    ($type:ident, $own:ident, $part:ident $(, $field:ident: $value:expr)*) => {
        $type {
            id: $own.id(),
            sliceCount: $own.slices,
            instanceCount: $own.places($part).len() as c_uint,
            multiprocessorCount: $own.multiprocessors($part),
            sharedCopyEngineCount: $part.profile.copy_engines,
            sharedDecoderCount: $part.profile.decoders,
            sharedEncoderCount: 0,
            sharedJpegCount: $part.profile.decoders,
            sharedOfaCount: $part.profile.optical_flow_engines,
            $($field: $value,)*
        }
    };
}

exports! {
    fn nvmlGpuInstanceGetComputeInstanceProfileInfo(
        gpu_instance |_, part|, profile: c_uint, engines: c_uint
    ) -> nvmlComputeInstanceProfileInfo_t {
        let own = asked(part, profile, engines)?;
        Ok(described!(nvmlComputeInstanceProfileInfo_t, own, part))
    }
    fn nvmlGpuInstanceGetComputeInstanceProfileInfoV(
        gpu_instance |_, part|, profile: c_uint, engines: c_uint
    ) fills info: nvmlComputeInstanceProfileInfo_v2_t, 2 {
        let own = asked(part, profile, engines)?;
        *info = described!(
            nvmlComputeInstanceProfileInfo_v2_t, own, part, version: info.version,
            name: pad_text(&format!("MIG {}", own.name(part)))
        );
        Ok(())
    }
    fn nvmlGpuInstanceGetComputeInstanceRemainingCapacity(gpu_instance |_, part|, profile: c_uint) -> c_uint {
        Ok(ComputeProfile::of(part, profile)?.room(part))
    }
    fn nvmlGpuInstanceGetComputeInstancePossiblePlacements(
        gpu_instance |_, part|, profile: c_uint
    ) -> all [nvmlComputeInstancePlacement_t] {
        Ok(ComputeProfile::of(part, profile)?.places(part).into_iter().map(placement).collect())
    }
    fn nvmlGpuInstanceGetComputeInstances(gpu_instance |gpu, part|, profile: c_uint) -> all [nvmlComputeInstance_t] {
        let profile = ComputeProfile::of(part, profile)?;
        let own = part.inside.iter().filter(|inside| inside.profile == profile);
        Ok(own.map(|inside| compute_handle(gpu.index, part.id, inside.id)).collect())
    }
    fn nvmlComputeInstanceGetInfo_v2(compute_instance |gpu, part, inside|) -> nvmlComputeInstanceInfo_t {
        Ok(nvmlComputeInstanceInfo_t {
            device: gpu.handle(),
            gpuInstance: instance_handle(gpu.index, part.id),
            id: inside.id,
            profileId: inside.profile.id(),
            placement: placement(inside.place),
        })
    }
}

fn placement((start, size): Place) -> nvmlComputeInstancePlacement_t {
    nvmlComputeInstancePlacement_t { start, size }
}
