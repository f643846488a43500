//! The reason why a demonstration was not completed.

use crate::{cuda::CudaError, error::gib};

#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub(crate) enum Stop {
    #[error(transparent)]
    Cuda(#[from] CudaError),
    #[error(
        "the demo needs {} of device memory, and {} are available: {} of {} are free, and {} stay free for others; try \
         again when other processes have freed memory",
        gib(*.needed_bytes), gib(*.usable_bytes), gib(*.free_bytes), gib(*.total_bytes), gib(*.reserve_bytes)
    )]
    NoRoom {
        needed_bytes: u64,
        usable_bytes: u64,
        free_bytes: u64,
        total_bytes: u64,
        reserve_bytes: u64,
    },
    #[error(
        "another program has taken memory meanwhile: {} were left of the {} that stay free for others, so that \
         everything was given back; try again when it has finished",
        gib(*.free_bytes), gib(*.reserve_bytes)
    )]
    BackedOff { free_bytes: u64, reserve_bytes: u64 },
    #[error("the second process {0}")]
    Second(String),
    #[error(
        "this did not happen as it should: {0}; another program may have allocated or freed memory meanwhile"
    )]
    NotShown(String),
    #[error("interrupted")]
    Interrupted,
}

impl Stop {
    pub(crate) fn exit_code(&self) -> u8 {
        match self {
            Self::NoRoom { .. } | Self::BackedOff { .. } => 5,
            Self::Interrupted => 130,
            Self::Cuda(_) | Self::Second(_) | Self::NotShown(_) => 1,
        }
    }
}
