//! The instances that MIG makes of a GPU, and their profiles.

use super::{
    numbers::Numbers,
    raw::{function as f, text},
    subject::Target,
};
use crate::vendor::nvml::query::{Answer, Code, Value};

/// A GPU instance's profile, from the structure that has its name, or from that of older drivers.
pub(super) fn gpu_profile(target: Target<'_>, profile: u32) -> Answer {
    match target.library().of(&f::GPU_INSTANCE_PROFILE, target.device, profile) {
        Err(Code::FUNCTION_NOT_FOUND | Code::ARGUMENT_VERSION_MISMATCH) => {
            one(target.library().of(&f::GPU_INSTANCE_PROFILE_V1, target.device, profile))
        }
        info => one(info),
    }
}

pub(super) fn gpu_profile_name(target: Target<'_>, profile: u32) -> Answer {
    let info = target.library().of(&f::GPU_INSTANCE_PROFILE, target.device, profile)?;
    Ok(Value::Text(text(&info.name)))
}

pub(super) fn gpu_places(target: Target<'_>, profile: u32) -> Answer {
    all(target.library().gpu_instance_places(target.device, profile))
}

pub(super) fn gpu_instances(target: Target<'_>, profile: u32) -> Answer {
    all(target.library().gpu_instances(target.device, profile))
}

/// A compute instance's profile within a GPU instance, likewise.
pub(super) fn compute_profile(target: Target<'_>, gpu_instance: u32, profile: u32) -> Answer {
    let instance = target.library().gpu_instance(target.device, gpu_instance)?;
    match target.library().compute_instance_profile(instance, profile) {
        Err(Code::FUNCTION_NOT_FOUND | Code::ARGUMENT_VERSION_MISMATCH) => {
            one(target.library().compute_instance_profile_v1(instance, profile))
        }
        info => one(info),
    }
}

pub(super) fn compute_profile_name(target: Target<'_>, gpu_instance: u32, profile: u32) -> Answer {
    let instance = target.library().gpu_instance(target.device, gpu_instance)?;
    let info = target.library().compute_instance_profile(instance, profile)?;
    Ok(Value::Text(text(&info.name)))
}

pub(super) fn compute_capacity(target: Target<'_>, gpu_instance: u32, profile: u32) -> Answer {
    let instance = target.library().gpu_instance(target.device, gpu_instance)?;
    target.library().compute_instance_capacity(instance, profile).map(Value::number)
}

pub(super) fn compute_places(target: Target<'_>, gpu_instance: u32, profile: u32) -> Answer {
    let instance = target.library().gpu_instance(target.device, gpu_instance)?;
    all(target.library().compute_instance_places(instance, profile))
}

pub(super) fn compute_instances(target: Target<'_>, gpu_instance: u32, profile: u32) -> Answer {
    let instance = target.library().gpu_instance(target.device, gpu_instance)?;
    all(target.library().compute_instances(instance, profile))
}

fn one(value: Result<impl Numbers, Code>) -> Answer {
    Ok(Value::Numbers(value?.numbers()))
}

fn all<const N: usize>(items: Result<Vec<[u32; N]>, Code>) -> Answer {
    Ok(Value::Numbers(items?.into_iter().flatten().map(i128::from).collect()))
}
