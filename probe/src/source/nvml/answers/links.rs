//! What lies between two GPUs, and which CPUs and NUMA nodes are near.

use super::{
    raw::{self, function as f},
    subject::Asked,
};
use crate::question::{Answer, Code, Subject, Value};

/// Indices of GPUs.
pub(super) fn indices(library: &raw::Library, devices: &[raw::Device]) -> Answer {
    let index = |device: &raw::Device| library.out(&f::INDEX, *device).map(i128::from);
    devices.iter().map(index).collect::<Result<_, _>>().map(Value::Numbers)
}

pub(super) fn nearest_gpus(asked: Asked<'_>, level: u32) -> Answer {
    indices(asked.library(), &asked.library().nearest_gpus(asked.device, level)?)
}

pub(super) fn common_ancestor(asked: Asked<'_>, other: u32) -> Answer {
    let other = asked.answers.device(Subject::gpu(other))?;
    asked.library().between(&f::COMMON_ANCESTOR, asked.device, other).map(Value::number)
}

pub(super) fn p2p_status(asked: Asked<'_>, other: u32, capability: u32) -> Answer {
    let other = asked.answers.device(Subject::gpu(other))?;
    asked.library().between_of(&f::P2P_STATUS, asked.device, other, capability).map(Value::number)
}

/// A set, as the words that it is made of.
pub(super) fn words(words: Result<Vec<u64>, Code>) -> Answer {
    Ok(Value::Numbers(words?.into_iter().map(i128::from).collect()))
}
