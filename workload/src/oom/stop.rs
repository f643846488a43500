//! The reason why a demonstration was not completed.

use crate::{cuda::CudaError, error::format_gib};

#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub(crate) enum DemoError {
    #[error(transparent)]
    Cuda(#[from] CudaError),
    #[error(
        "the demo needs {} of device memory, but only {} are available: {} of {} are free, and {} \
         stay free for others; try again when other processes have freed memory",
        format_gib(*.needed_bytes), format_gib(*.usable_bytes), format_gib(*.free_bytes), format_gib(*.total_bytes), format_gib(*.reserve_bytes)
    )]
    NoRoom {
        needed_bytes: u64,
        usable_bytes: u64,
        free_bytes: u64,
        total_bytes: u64,
        reserve_bytes: u64,
    },
    #[error(
        "another program allocated memory in the meantime: only {} remained of the {} that must \
         stay free for others, so the demo freed all its memory; try again when the other program \
         has ended",
        format_gib(*.free_bytes), format_gib(*.reserve_bytes)
    )]
    BackedOff { free_bytes: u64, reserve_bytes: u64 },
    #[error("the second process {0}")]
    Second(String),
    #[error(
        "the demo did not go as expected: {0}; another program may have allocated or freed memory \
         in the meantime"
    )]
    NotShown(String),
    #[error("interrupted")]
    Interrupted,
}

impl DemoError {
    pub(crate) fn exit_code(&self) -> u8 {
        match self {
            Self::NoRoom { .. } | Self::BackedOff { .. } => 5,
            Self::Interrupted => 130,
            Self::Cuda(_) | Self::Second(_) | Self::NotShown(_) => 1,
        }
    }
}
