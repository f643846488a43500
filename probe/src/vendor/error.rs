//! Why a source or a device cannot be used. Each vendor words its own messages.

use thiserror::Error;

use crate::model::Absence;

/// Why a whole GPU cannot be opened or read.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum DeviceError {
    /// It has fallen off the bus.
    #[error("GPU lost")]
    Lost,
    /// The system has switched it off to save power.
    #[error("GPU asleep")]
    Asleep,
    /// The driver was unloaded or replaced underneath the library: nothing can be read until
    /// another process loads the library anew.
    #[error("{cause}")]
    DriverReplaced {
        /// The code that the driver returns.
        code: u32,
        /// Why a source of this driver cannot be opened now.
        cause: SourceError,
    },
    /// The driver refuses to open it, or fails every call about it.
    #[error("{meaning}; {advice}")]
    Failed {
        /// The reason why its readings are absent.
        reason: Absence,
        /// The meaning of the driver's code, as a clause.
        meaning: String,
        /// What to do about it, as a clause.
        advice: String,
    },
}

/// Why there is no source. Each message says what is missing and what to do about it.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum SourceError {
    /// The library is missing or cannot be loaded.
    #[error("{0}")]
    NoLibrary(String),
    /// The library is there, the kernel driver is not.
    #[error("{0}")]
    NoDriver(String),
    /// Library and driver are there, a GPU is not.
    #[error("{0}")]
    NoDevice(String),
    /// The driver was upgraded underneath the library.
    #[error("{0}")]
    VersionMismatch(String),
    /// The device files may not be opened.
    #[error("{0}")]
    NoPermission(String),
    /// Any other error of the driver.
    #[error("{0}")]
    Driver(String),
    /// The system refuses the threads that reading takes.
    #[error(
        "cannot start a thread for each GPU: {cause}; raise the limit (`ulimit -u`, or the container's pids limit)"
    )]
    NoThread {
        /// The system's message.
        cause: String,
    },
    /// A simulated source was asked for that cannot be built.
    #[error("{0}")]
    BadScenario(String),
}
