//! The MIG devices of a simulated GPU.

use crate::{
    model::{MemorySample, MigDevice, MigSample, Reading},
    vendor::sim::{GpuIdentity, GpuState, MigState},
};

use super::{activity, where_supported};

/// What never changes about them.
pub(super) fn devices(state: &GpuState) -> Vec<MigDevice> {
    let device = |own: &MigState| MigDevice {
        index: own.index,
        uuid: own.uuid.clone(),
        instance: own.instance,
        profile: Reading::Now(own.profile.clone()),
        multiprocessors: Reading::Now(own.multiprocessors),
        copy_engines: Reading::Now(own.copy_engines),
        decoders: Reading::Now(own.decoders),
        encoders: Reading::Now(0),
    };
    state.mig.iter().map(device).collect()
}

/// What they do.
pub(super) fn samples(state: &GpuState, identity: &GpuIdentity) -> Vec<MigSample> {
    let sample = |own: &MigState| MigSample {
        uuid: own.uuid.clone(),
        instance: own.instance,
        memory: MemorySample {
            total_bytes: Reading::Now(own.memory_total_bytes),
            used_bytes: Reading::Now(own.memory_used_bytes),
            reserved_bytes: Reading::Now(0),
            free_bytes: Reading::Now(own.memory_total_bytes - own.memory_used_bytes),
        },
        activity: where_supported(identity.counts_activity, activity(&own.counters)),
        allocated_to: Vec::new(),
    };
    state.mig.iter().map(sample).collect()
}
