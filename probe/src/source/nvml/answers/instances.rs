//! The instances that MIG makes of a GPU, and their profiles.

use super::{
    numbers::Numbers,
    raw::{function as f, text},
    subject::Asked,
};
use crate::question::{Answer, Code, Value};

/// A GPU instance's profile, from the structure that has its name, or from that of older drivers.
pub(super) fn gpu_profile(asked: Asked<'_>, profile: u32) -> Answer {
    match asked.library().of(&f::GPU_INSTANCE_PROFILE, asked.device, profile) {
        Err(Code::FUNCTION_NOT_FOUND | Code::ARGUMENT_VERSION_MISMATCH) => {
            one(asked.library().of(&f::GPU_INSTANCE_PROFILE_V1, asked.device, profile))
        }
        info => one(info),
    }
}

pub(super) fn gpu_profile_name(asked: Asked<'_>, profile: u32) -> Answer {
    let info = asked.library().of(&f::GPU_INSTANCE_PROFILE, asked.device, profile)?;
    Ok(Value::Text(text(&info.name)))
}

pub(super) fn gpu_places(asked: Asked<'_>, profile: u32) -> Answer {
    all(asked.library().gpu_instance_places(asked.device, profile))
}

pub(super) fn gpu_instances(asked: Asked<'_>, profile: u32) -> Answer {
    all(asked.library().gpu_instances(asked.device, profile))
}

/// A compute instance's profile within a GPU instance, likewise.
pub(super) fn compute_profile(asked: Asked<'_>, gpu_instance: u32, profile: u32) -> Answer {
    let instance = asked.library().gpu_instance(asked.device, gpu_instance)?;
    match asked.library().compute_instance_profile(instance, profile) {
        Err(Code::FUNCTION_NOT_FOUND | Code::ARGUMENT_VERSION_MISMATCH) => {
            one(asked.library().compute_instance_profile_v1(instance, profile))
        }
        info => one(info),
    }
}

pub(super) fn compute_profile_name(asked: Asked<'_>, gpu_instance: u32, profile: u32) -> Answer {
    let instance = asked.library().gpu_instance(asked.device, gpu_instance)?;
    let info = asked.library().compute_instance_profile(instance, profile)?;
    Ok(Value::Text(text(&info.name)))
}

pub(super) fn compute_capacity(asked: Asked<'_>, gpu_instance: u32, profile: u32) -> Answer {
    let instance = asked.library().gpu_instance(asked.device, gpu_instance)?;
    asked.library().compute_instance_capacity(instance, profile).map(Value::number)
}

pub(super) fn compute_places(asked: Asked<'_>, gpu_instance: u32, profile: u32) -> Answer {
    let instance = asked.library().gpu_instance(asked.device, gpu_instance)?;
    all(asked.library().compute_instance_places(instance, profile))
}

pub(super) fn compute_instances(asked: Asked<'_>, gpu_instance: u32, profile: u32) -> Answer {
    let instance = asked.library().gpu_instance(asked.device, gpu_instance)?;
    all(asked.library().compute_instances(instance, profile))
}

fn one(value: Result<impl Numbers, Code>) -> Answer {
    Ok(Value::Numbers(value?.numbers()))
}

fn all<const N: usize>(items: Result<Vec<[u32; N]>, Code>) -> Answer {
    Ok(Value::Numbers(items?.into_iter().flatten().map(i128::from).collect()))
}
