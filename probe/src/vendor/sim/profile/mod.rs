//! What the programs on a GPU do: a file for each kind.

mod cycle;
mod held;
mod inference;
mod leak;
mod training;

pub(super) use cycle::Cycle;

use super::{Profile, noise::Noise};

/// What a GPU is asked to do at one moment.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Load {
    /// Share of time in which a kernel runs.
    pub(super) gpu_percent: f64,
    /// Share of time in which device memory is read or written.
    pub(super) memory_percent: f64,
    /// Use of the video encoder.
    pub(super) encoder_percent: f64,
    /// Use of the video decoder.
    pub(super) decoder_percent: f64,
    /// Power that the kernels would draw at the highest clocks, as a share of the power limit; above 1 is too much.
    pub(super) demand: f64,
    /// The programs that hold the GPU.
    pub(super) tenants: [Option<Tenant>; 2],
}

/// A program that holds a GPU.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Tenant {
    /// What it is.
    pub(super) program: Program,
    /// Which run of it: a program that was started again has another PID.
    pub(super) run: i64,
    /// When this run started, in seconds of the timeline.
    pub(super) started_s: f64,
    /// The memory it holds, as a share of all that programs can have.
    pub(super) memory: f64,
    /// Its part of the GPU's utilisation, 0 to 1.
    pub(super) part: f64,
}

/// The kinds of programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Program {
    /// A training script.
    Training,
    /// A model server.
    Server,
    /// A script that keeps what it should drop.
    Leak,
    /// A notebook's kernel.
    Notebook,
}

impl Profile {
    /// What is asked of a GPU with this profile, at a time of the timeline.
    pub(super) fn load(self, noise: Noise, seconds: f64) -> Load {
        match self {
            Self::Training => training::load(noise, seconds),
            Self::Inference => inference::load(noise, seconds),
            Self::Leak => leak::load(noise, seconds),
            Self::Held => held::load(noise, seconds),
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
