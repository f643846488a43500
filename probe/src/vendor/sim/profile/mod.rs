//! The workloads of programs on a simulated GPU, with one function per kind of workload.

mod cycle;
mod hang;
mod held;
mod inference;
mod leak;
mod training;

pub(super) use cycle::Cycle;

use super::{Profile, noise::Noise};

/// A GPU's load at a certain time.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Load {
    pub(super) gpu_percent: f64,
    /// The share of time during which device memory is read or written, in percent.
    pub(super) memory_percent: f64,
    pub(super) encoder_percent: f64,
    pub(super) decoder_percent: f64,
    /// The power that the kernels would draw at the highest clocks, as a share of the power limit.
    /// This share can exceed 1.
    pub(super) demand: f64,
    /// Whether the kernels only wait, as in a collective. Waiting kernels occupy multiprocessors
    /// but do not move data.
    pub(super) waits: bool,
    pub(super) tenants: [Option<Tenant>; 2],
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Tenant {
    pub(super) program: Program,
    /// The number of this run of the program. Each run has a different PID.
    pub(super) run: i64,
    /// The time at which this run started, in seconds on the timeline.
    pub(super) started_s: f64,
    /// The program's memory, as a share of the memory that is available to programs.
    pub(super) memory: f64,
    /// The program's share of the GPU's utilization, from 0 to 1.
    pub(super) part: f64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Program {
    Training,
    Server,
    Leak,
    Notebook,
    /// One rank of a job that uses several GPUs.
    Collective,
}

impl Profile {
    pub(super) fn compute_load(self, noise: Noise, seconds: f64) -> Load {
        match self {
            Self::Training => training::compute_training_load(noise, seconds),
            Self::Inference => inference::compute_inference_load(noise, seconds),
            Self::Leak => leak::compute_leak_load(noise, seconds),
            Self::Held => held::compute_held_load(noise, seconds),
            Self::Hang => hang::compute_hang_load(noise, seconds),
            Self::Idle => Load::default(),
        }
    }

    /// Returns a GPU's default profile. The profiles differ by index, so that a machine shows all
    /// kinds of workloads.
    pub(super) fn default_for(index: u32) -> Self {
        const MIX: [Profile; 8] = [
            Profile::Training,
            Profile::Inference,
            Profile::Leak,
            Profile::Held,
            Profile::Training,
            Profile::Training,
            Profile::Inference,
            Profile::Idle,
        ];
        MIX[index as usize % MIX.len()]
    }
}
