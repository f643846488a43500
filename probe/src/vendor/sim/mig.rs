//! MIG devices: parts of a simulated GPU that work as GPUs of their own.

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
    /// NVML's index among the MIG devices of its GPU.
    pub index: u32,
    /// As `MIG-...`.
    pub uuid: String,
    /// As `NVIDIA H200 MIG 1g.18gb`.
    pub name: String,
    /// As `1g.18gb`.
    pub profile: String,
    /// Which part of the GPU it is.
    pub instance: MigInstance,
    /// Sevenths of the GPU.
    pub slices: u32,
    /// Multiprocessors.
    pub multiprocessors: u32,
    /// Copy engines.
    pub copy_engines: u32,
    /// Video decoders, and JPEG decoders, as many.
    pub decoders: u32,
    /// Its memory.
    pub memory_total_bytes: u64,
    /// Allocated by processes in it.
    pub memory_used_bytes: u64,
    /// What its parts do, in percent of them.
    pub counters: Counters,
}

impl MigState {
    /// The most of a GPU.
    pub const MOST: u32 = MigSettings::MOST;

    /// How many eighths of the GPU's memory it has.
    pub fn memory_eighths(&self) -> u32 {
        match self.slices {
            3 => 4,
            7 => 8,
            slices => slices,
        }
    }

    pub(super) fn new(gpu: &GpuIdentity, seed: u64, index: u32, own: &MigSettings, processes: &[ProcessState]) -> Self {
        let instance = own.instance();
        let MigProfile { text, slices, gigabytes } = &own.profile;
        let purpose = format!("mig {}/{}", instance.gpu_instance, instance.compute_instance);
        let inside = || processes.iter().filter(|process| process.mig == Some(instance));
        let memory_total_bytes = (u64::from(*gigabytes) * 1_000_000_000) & !0xF_FFFF;
        let used: u64 = inside().filter_map(|process| process.memory_bytes).sum();
        let busy = inside().map(|process| process.sm_percent).sum::<u32>().min(100);
        Self {
            index,
            uuid: format!("MIG-{}", uuid(Noise::new(seed, gpu.index).stream(&purpose))),
            name: format!("{} MIG {text}", gpu.name),
            profile: text.clone(),
            instance,
            slices: *slices,
            multiprocessors: match slices {
                3 => 60,
                7 => 132,
                slices => slices * 16,
            },
            copy_engines: if *slices == 7 { 8 } else { *slices },
            decoders: *slices,
            memory_total_bytes,
            memory_used_bytes: used.min(memory_total_bytes),
            counters: Counters::of(busy.into(), f64::from(busy) * 0.4),
        }
    }
}
