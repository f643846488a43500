//! The workloads of programs on a GPU, with one file per kind.

mod cycle;
mod hang;
mod held;
mod inference;
mod leak;
mod training;

pub(super) use cycle::Cycle;

use super::{Profile, noise::Noise};

/// The load of a GPU at one moment.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Load {
    pub(super) gpu_percent: f64,
    /// The share of time during which device memory is read or written.
    pub(super) memory_percent: f64,
    pub(super) encoder_percent: f64,
    pub(super) decoder_percent: f64,
    /// The power that the kernels would draw at the highest clocks, as a share of the power limit.
    /// It can exceed 1.
    pub(super) demand: f64,
    /// Whether the kernels only wait, like those of a collective. They occupy multiprocessors, but
    /// no data moves.
    pub(super) waits: bool,
    pub(super) tenants: [Option<Tenant>; 2],
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Tenant {
    pub(super) program: Program,
    /// The number of the run. A program that is started again has another PID.
    pub(super) run: i64,
    /// The start time of this run, in seconds of the timeline.
    pub(super) started_s: f64,
    /// The memory of the program, as a share of all memory that programs can use.
    pub(super) memory: f64,
    /// The program's share of the GPU's utilization, 0 to 1.
    pub(super) part: f64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Program {
    Training,
    Server,
    Leak,
    Notebook,
    /// One rank of a job on several GPUs.
    Collective,
}

impl Profile {
    pub(super) fn load(self, noise: Noise, seconds: f64) -> Load {
        match self {
            Self::Training => training::load(noise, seconds),
            Self::Inference => inference::load(noise, seconds),
            Self::Leak => leak::load(noise, seconds),
            Self::Held => held::load(noise, seconds),
            Self::Hang => hang::load(noise, seconds),
            Self::Idle => Load::default(),
        }
    }

    /// Returns the default profile of a GPU. The profiles are mixed, so that a machine shows all
    /// kinds of work.
    pub(super) fn of_index(index: u32) -> Self {
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
