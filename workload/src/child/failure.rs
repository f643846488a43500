//! Failures that concern a job as a whole.

use std::fmt;

use crate::{
    cuda::CudaError,
    error::RunError,
    protocol::exit_code::{FAILED, NO_GPU, REFUSED, USAGE},
};

/// The reason why a job was not started.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct JobFailure {
    /// The message, which contains the subject, the cause and the remedy.
    pub message: String,
    /// The exit code for this failure.
    pub code: u8,
}

impl JobFailure {
    pub(crate) fn new(error: impl fmt::Display, code: u8) -> Self {
        Self {
            message: error.to_string(),
            code,
        }
    }

    /// Returns the failure of a job that requests something impossible.
    pub(crate) fn usage_error(error: impl fmt::Display) -> Self {
        Self::new(error, USAGE)
    }

    pub(crate) fn general_error(error: impl fmt::Display) -> Self {
        Self::new(error, FAILED)
    }

    pub(crate) fn refusal(error: impl fmt::Display) -> Self {
        Self::new(error, REFUSED)
    }

    /// Returns the failure of a job that finds no working GPU.
    pub(crate) fn new_without_gpu(error: impl Into<RunError>) -> Self {
        Self::new(error.into(), NO_GPU)
    }
}

pub(crate) fn exit_code_of(error: &RunError) -> u8 {
    match error {
        RunError::TooLarge { .. } | RunError::TooLittle { .. } => REFUSED,
        _ => FAILED,
    }
}

impl From<CudaError> for JobFailure {
    fn from(error: CudaError) -> Self {
        Self::new_without_gpu(error)
    }
}
