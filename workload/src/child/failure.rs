//! Why a job is not done.

use std::fmt;

use crate::{
    cuda::CudaError,
    error::RunError,
    protocol::exit_code::{FAILED, NO_GPU, REFUSED, USAGE},
};

/// Why a job is not done, before anything of it has begun.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct JobFailure {
    /// Subject, cause and fix.
    pub message: String,
    /// The exit code that says the same to a script.
    pub code: u8,
}

impl JobFailure {
    pub(crate) fn new(error: impl fmt::Display, code: u8) -> Self {
        Self {
            message: error.to_string(),
            code,
        }
    }

    /// It asks for what cannot be.
    pub(crate) fn usage(error: impl fmt::Display) -> Self {
        Self::new(error, USAGE)
    }

    pub(crate) fn failed(error: impl fmt::Display) -> Self {
        Self::new(error, FAILED)
    }

    pub(crate) fn refused(error: impl fmt::Display) -> Self {
        Self::new(error, REFUSED)
    }

    /// There is no GPU for it, or none that works.
    pub(crate) fn no_gpu(error: impl Into<RunError>) -> Self {
        Self::new(error.into(), NO_GPU)
    }
}

pub(crate) fn code_of(error: &RunError) -> u8 {
    match error {
        RunError::TooLarge { .. } | RunError::TooLittle { .. } => REFUSED,
        _ => FAILED,
    }
}

impl From<CudaError> for JobFailure {
    fn from(error: CudaError) -> Self {
        Self::no_gpu(error)
    }
}
