//! The instances that MIG makes of a GPU, and their profiles.

use super::{
    raw::{GpuInstance, function as f, numbers, text},
    subject::Target,
};
use crate::vendor::nvml::query::{Answer, Code, Value};

/// A GPU instance's profile, from the structure that has its name, or from that of older drivers.
pub(super) fn gpu_profile(target: Target<'_>, profile: u32) -> Answer {
    newest(target.of(&f::GPU_INSTANCE_PROFILE, profile), || {
        target.of(&f::GPU_INSTANCE_PROFILE_V1, profile)
    })
}

pub(super) fn gpu_profile_name(target: Target<'_>, profile: u32) -> Answer {
    let info = target
        .library()
        .of(&f::GPU_INSTANCE_PROFILE, target.device, profile)?;
    Ok(Value::Text(text(&info.name)))
}

pub(super) fn gpu_places(target: Target<'_>, profile: u32) -> Answer {
    target
        .library()
        .gpu_instance_places(target.device, profile)
        .map(numbers)
}

pub(super) fn gpu_instances(target: Target<'_>, profile: u32) -> Answer {
    target
        .library()
        .gpu_instances(target.device, profile)
        .map(numbers)
}

/// A compute instance's profile within a GPU instance, likewise.
pub(super) fn compute_profile(target: Target<'_>, within: u32, profile: u32) -> Answer {
    let (library, instance) = (target.library(), gpu_instance(target, within)?);
    let one = |info: Result<_, Code>| info.map(|info| numbers([info]));
    newest(
        one(library.compute_instance_profile(&f::COMPUTE_INSTANCE_PROFILE, instance, profile)),
        || {
            let info = library.compute_instance_profile(
                &f::COMPUTE_INSTANCE_PROFILE_V1,
                instance,
                profile,
            );
            info.map(|info| numbers([info]))
        },
    )
}

pub(super) fn compute_profile_name(target: Target<'_>, within: u32, profile: u32) -> Answer {
    let instance = gpu_instance(target, within)?;
    let info = target.library().compute_instance_profile(
        &f::COMPUTE_INSTANCE_PROFILE,
        instance,
        profile,
    )?;
    Ok(Value::Text(text(&info.name)))
}

pub(super) fn compute_capacity(target: Target<'_>, within: u32, profile: u32) -> Answer {
    target
        .library()
        .compute_instance_capacity(gpu_instance(target, within)?, profile)
        .map(Value::number)
}

pub(super) fn compute_places(target: Target<'_>, within: u32, profile: u32) -> Answer {
    target
        .library()
        .compute_instance_places(gpu_instance(target, within)?, profile)
        .map(numbers)
}

pub(super) fn compute_instances(target: Target<'_>, within: u32, profile: u32) -> Answer {
    target
        .library()
        .compute_instances(gpu_instance(target, within)?, profile)
        .map(numbers)
}

fn gpu_instance(target: Target<'_>, id: u32) -> Result<GpuInstance, Code> {
    target.library().gpu_instance(target.device, id)
}

/// What the older function says where the library or the driver does not have the newer one.
fn newest(answer: Answer, ask: impl FnOnce() -> Answer) -> Answer {
    match answer {
        Err(Code::FUNCTION_NOT_FOUND | Code::ARGUMENT_VERSION_MISMATCH) => ask(),
        answer => answer,
    }
}
