//! MIG devices: parts of a simulated GPU that programs use like separate GPUs.

use crate::model::MigInstance;

use super::{
    Counters, GpuIdentity, ProcessState,
    identity::make_uuid,
    noise::Noise,
    scenario::{MigProfile, MigSettings},
};

/// The state of a MIG device at a certain time.
#[derive(Debug, Clone, PartialEq)]
pub struct MigState {
    /// The MIG device's NVML index within the GPU.
    pub index: u32,
    /// The UUID, which starts with `MIG-`.
    pub uuid: String,
    /// The name, for example `NVIDIA H200 MIG 1g.18gb`.
    pub name: String,
    /// The MIG profile, for example `1g.18gb`, or `1c.3g.71gb` for a part of a GPU instance.
    pub profile: String,
    /// The GPU instance and compute instance that form the device.
    pub instance: MigInstance,
    /// The number of slices in the GPU instance. A slice is a seventh of the GPU.
    pub slices: u32,
    /// The number of slices in the compute instance.
    pub compute_slices: u32,
    /// The number of multiprocessors.
    pub multiprocessors: u32,
    /// The number of copy engines.
    pub copy_engines: u32,
    /// The number of video decoders. The number of JPEG decoders is the same.
    pub decoders: u32,
    /// The memory of the GPU instance in bytes. Its compute instances share this memory.
    pub memory_total_bytes: u64,
    /// The memory that processes in the GPU instance have allocated, in bytes.
    pub memory_used_bytes: u64,
    /// The activity of the device's hardware units. 100 means that all of the device's units are
    /// active.
    pub counters: Counters,
}

impl MigState {
    /// The number of slices in a GPU, and thus the maximum number of MIG devices.
    pub const MAX_SLICES: u32 = MigSettings::MAX_SLICES;

    /// Returns the device's share of the GPU's memory, in eighths.
    pub fn memory_eighths(&self) -> u32 {
        match self.slices {
            3 => 4,
            7 => 8,
            slices => slices,
        }
    }

    pub(super) fn new(
        gpu: &GpuIdentity,
        seed: u64,
        index: u32,
        own: &MigSettings,
        processes: &[ProcessState],
    ) -> Self {
        let instance = own.instance();
        let MigProfile {
            text,
            slices,
            compute_slices,
            gigabytes,
            ..
        } = &own.profile;
        let purpose = format!(
            "mig {}/{}",
            instance.gpu_instance, instance.compute_instance
        );
        let inside = processes
            .iter()
            .filter(|process| process.mig == Some(instance));
        let is_sharing = |process: &&ProcessState| {
            process
                .mig
                .is_some_and(|other| other.gpu_instance == instance.gpu_instance)
        };
        let memory_total_bytes = (u64::from(*gigabytes) * 1_000_000_000) & !0xF_FFFF;
        let used: u64 = processes
            .iter()
            .filter(is_sharing)
            .filter_map(|process| process.memory_bytes)
            .sum();
        let busy = inside
            .map(|process| process.sm_percent)
            .sum::<u32>()
            .min(100);
        let multiprocessors = match slices {
            3 => 60,
            7 => 132,
            slices => slices * 16,
        };
        Self {
            index,
            uuid: format!(
                "MIG-{}",
                make_uuid(Noise::new(seed, gpu.index).derive_stream(&purpose))
            ),
            name: format!("{} MIG {text}", gpu.name),
            profile: text.clone(),
            instance,
            slices: *slices,
            compute_slices: *compute_slices,
            multiprocessors: if compute_slices == slices {
                multiprocessors
            } else {
                multiprocessors / slices * compute_slices
            },
            copy_engines: if *slices == 7 { 8 } else { *slices },
            decoders: *slices,
            memory_total_bytes,
            memory_used_bytes: used.min(memory_total_bytes),
            counters: Counters::from_utilization(busy.into(), f64::from(busy) * 0.4),
        }
    }
}
