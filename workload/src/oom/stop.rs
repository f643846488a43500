//! Why a demonstration did not come to its end.

use crate::{cuda::CudaError, error::gib};

/// Why a demonstration did not come to its end.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub(crate) enum Stop {
    /// There is no such scenario.
    #[error("there is no scenario '{0}'; see `gpumon oom list`")]
    Unknown(String),
    /// The driver failed where it should not have.
    #[error(transparent)]
    Cuda(#[from] CudaError),
    /// The reserve does not leave as much as it takes.
    #[error(
        "the demo needs {} of device memory, and {} are available: {} of {} are free, and {} stay free for others; try \
         again when other processes have freed memory",
        gib(*.needed_bytes), gib(*.usable_bytes), gib(*.free_bytes), gib(*.total_bytes), gib(*.reserve_bytes)
    )]
    NoRoom {
        /// What it takes.
        needed_bytes: u64,
        /// What may be taken.
        usable_bytes: u64,
        /// What is free.
        free_bytes: u64,
        /// What there is.
        total_bytes: u64,
        /// What is left to others.
        reserve_bytes: u64,
    },
    /// Others took so much meanwhile that too little was left for them.
    #[error(
        "another program has taken memory meanwhile: {} were left of the {} that stay free for others, so that \
         everything was given back; try again when it has finished",
        gib(*.free_bytes), gib(*.reserve_bytes)
    )]
    BackedOff {
        /// What was free then.
        free_bytes: u64,
        /// What is left to others.
        reserve_bytes: u64,
    },
    /// The other process did not do its part.
    #[error("the second process {0}")]
    Second(String),
    /// It was done, and did not show what it should.
    #[error("this did not happen as it should: {0}; another program may have allocated or freed memory meanwhile")]
    NotShown(String),
    /// Somebody asked to stop.
    #[error("interrupted")]
    Interrupted,
}

impl Stop {
    /// What it comes to for a script.
    pub(crate) fn exit_code(&self) -> u8 {
        match self {
            Self::Unknown(_) => 2,
            Self::NoRoom { .. } | Self::BackedOff { .. } => 5,
            Self::Interrupted => 130,
            Self::Cuda(_) | Self::Second(_) | Self::NotShown(_) => 1,
        }
    }
}
