//! What the programs on a GPU do: a file for each kind.

mod cycle;
mod hang;
mod held;
mod inference;
mod leak;
mod training;

pub(super) use cycle::Cycle;

use super::{Profile, noise::Noise};

/// What a GPU is asked to do at one moment.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Load {
    pub(super) gpu_percent: f64,
    /// Share of time in which device memory is read or written.
    pub(super) memory_percent: f64,
    pub(super) encoder_percent: f64,
    pub(super) decoder_percent: f64,
    /// Power that the kernels would draw at the highest clocks, as a share of the power limit;
    /// above 1 is too much.
    pub(super) demand: f64,
    /// Whether the kernels only wait, as those of a collective do: they hold multiprocessors, and
    /// nothing else moves.
    pub(super) waits: bool,
    pub(super) tenants: [Option<Tenant>; 2],
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Tenant {
    pub(super) program: Program,
    /// Which run of it: a program that was started again has another PID.
    pub(super) run: i64,
    /// When this run started, in seconds of the timeline.
    pub(super) started_s: f64,
    /// The memory it holds, as a share of all that programs can have.
    pub(super) memory: f64,
    /// Its part of the GPU's utilization, 0 to 1.
    pub(super) part: f64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Program {
    Training,
    Server,
    Leak,
    Notebook,
    /// A rank of one job on several GPUs.
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

    /// The profile of a GPU for which none is said: a machine where a bit of everything goes on.
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
