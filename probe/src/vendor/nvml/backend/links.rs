//! What lies between two GPUs, and which CPUs and NUMA nodes are near.

use super::{
    raw::{self, function as f},
    subject::Target,
};
use crate::vendor::nvml::query::{Answer, Code, Subject, Value};

/// Indices of GPUs.
pub(super) fn indices(library: &raw::Library, devices: &[raw::Device]) -> Answer {
    let index = |device: &raw::Device| library.out(&f::INDEX, *device).map(i128::from);
    devices.iter().map(index).collect::<Result<_, _>>().map(Value::Numbers)
}

pub(super) fn nearest_gpus(target: Target<'_>, level: u32) -> Answer {
    indices(target.library(), &target.library().nearest_gpus(target.device, level)?)
}

pub(super) fn common_ancestor(target: Target<'_>, other: u32) -> Answer {
    let other = target.backend.device(Subject::gpu(other))?;
    target.library().between(&f::COMMON_ANCESTOR, target.device, other).map(Value::number)
}

pub(super) fn p2p_status(target: Target<'_>, other: u32, capability: u32) -> Answer {
    let other = target.backend.device(Subject::gpu(other))?;
    target.library().between_of(&f::P2P_STATUS, target.device, other, capability).map(Value::number)
}

/// A set, as the words that it is made of.
pub(super) fn words(words: Result<Vec<u64>, Code>) -> Answer {
    Ok(Value::Numbers(words?.into_iter().map(i128::from).collect()))
}
