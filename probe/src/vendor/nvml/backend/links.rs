//! What lies between two GPUs, and which CPUs and NUMA nodes are near.

use super::{
    raw::{self, function as f, numbers},
    subject::Target,
};
use crate::vendor::nvml::query::{Answer, Subject, Value};

pub(super) fn indices(library: &raw::Library, devices: &[raw::Device]) -> Answer {
    let index = |device: &raw::Device| library.out(&f::INDEX, *device);
    devices
        .iter()
        .map(index)
        .collect::<Result<Vec<u32>, _>>()
        .map(numbers)
}

pub(super) fn nearest_gpus(target: Target<'_>, level: u32) -> Answer {
    indices(
        target.library(),
        &target.library().nearest_gpus(target.device, level)?,
    )
}

pub(super) fn common_ancestor(target: Target<'_>, other: u32) -> Answer {
    let other = target.backend.device(Subject::gpu(other))?;
    target
        .library()
        .between(&f::COMMON_ANCESTOR, target.device, other)
        .map(Value::number)
}

pub(super) fn p2p_status(target: Target<'_>, other: u32, capability: u32) -> Answer {
    let other = target.backend.device(Subject::gpu(other))?;
    target
        .library()
        .between_of(&f::P2P_STATUS, target.device, other, capability)
        .map(Value::number)
}
