//! Errors that prevent a source or device from being used. Each vendor's module writes its own
//! error messages.

use thiserror::Error;

use crate::model::Absence;

/// The reason why a GPU cannot be opened or read.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum DeviceError {
    /// The GPU has fallen off the bus.
    #[error("GPU lost")]
    Lost,
    /// The system has powered the GPU down.
    #[error("GPU asleep")]
    Asleep,
    /// The driver was unloaded or replaced after this process loaded its library. Only a new
    /// process can load the library again.
    #[error("{cause}")]
    DriverReplaced {
        /// The driver's return code.
        code: u32,
        /// The reason why the driver cannot be opened at present.
        cause: SourceError,
    },
    /// The driver refuses to open the GPU, or every call about the GPU fails.
    #[error("{meaning}; {advice}")]
    Failed {
        /// The reason that absent readings get.
        reason: Absence,
        /// The meaning of the driver's return code, as a clause.
        meaning: String,
        /// The recommended action, as a clause.
        advice: String,
    },
}

/// The reason why a source cannot be opened. Each message states what is missing and how to fix it.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum SourceError {
    /// The driver's library is missing or cannot be loaded.
    #[error("{0}")]
    NoLibrary(String),
    /// The driver's library is installed, but the kernel driver is not.
    #[error("{0}")]
    NoDriver(String),
    /// The library and the driver are installed, but there is no GPU.
    #[error("{0}")]
    NoDevice(String),
    /// The versions of the library and the kernel driver differ, for example after an upgrade.
    #[error("{0}")]
    VersionMismatch(String),
    /// The current user may not open the device files.
    #[error("{0}")]
    NoPermission(String),
    /// Any other driver error.
    #[error("{0}")]
    Driver(String),
    /// The system refused to start the threads that read the GPUs.
    #[error(
        "cannot start a thread for each GPU: {cause}; raise the limit (`ulimit -u`, or the \
         container's pids limit)"
    )]
    NoThread {
        /// The system's error message.
        cause: String,
    },
    /// The simulation's scenario is invalid.
    #[error("{0}")]
    BadScenario(String),
}
