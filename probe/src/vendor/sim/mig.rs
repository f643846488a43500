//! MIG devices, which are parts of a simulated GPU that work as separate GPUs.

use crate::model::MigInstance;

use super::{
    Counters, GpuIdentity, ProcessState,
    identity::uuid,
    noise::Noise,
    scenario::{MigProfile, MigSettings},
};

/// A MIG device at one moment.
#[derive(Debug, Clone, PartialEq)]
pub struct MigState {
    /// NVML's index within the GPU.
    pub index: u32,
    /// The UUID, which starts with `MIG-`.
    pub uuid: String,
    /// The name, for example `NVIDIA H200 MIG 1g.18gb`.
    pub name: String,
    /// The profile, for example `1g.18gb`, or `1c.3g.71gb` for a part of a GPU instance.
    pub profile: String,
    /// The GPU instance and the compute instance.
    pub instance: MigInstance,
    /// The number of slices in the GPU instance, each a seventh of the GPU.
    pub slices: u32,
    /// The number of slices in the compute instance.
    pub compute_slices: u32,
    /// The number of multiprocessors.
    pub multiprocessors: u32,
    /// The number of copy engines.
    pub copy_engines: u32,
    /// The number of video decoders, which is also that of JPEG decoders.
    pub decoders: u32,
    /// The memory of the GPU instance, which its compute instances share.
    pub memory_total_bytes: u64,
    /// The memory that processes in the GPU instance have allocated.
    pub memory_used_bytes: u64,
    /// The activity of the MIG device's parts, in percent of these parts.
    pub counters: Counters,
}

impl MigState {
    /// The number of slices in a GPU, which is also the maximum number of MIG devices.
    pub const MOST: u32 = MigSettings::MOST;

    /// Returns the share of the GPU's memory, in eighths.
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
            uuid: format!("MIG-{}", uuid(Noise::new(seed, gpu.index).stream(&purpose))),
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
            counters: Counters::of(busy.into(), f64::from(busy) * 0.4),
        }
    }
}
