//! Where readings come from.
//!
//! A [`Source`] knows how many GPUs there are; a [`Device`] is one of them, opened and read on a thread of its own,
//! so that a slow or hung GPU holds up nobody else.

mod choice;
pub mod nvml;
pub mod sim;

pub use choice::{BadSource, SourceChoice};

use std::path::Path;

use thiserror::Error;

use crate::{
    model::{Absence, Gpu, GpuDetails, GpuLink, GpuSample, Platform, Trace},
    vendor::nvml::query::CachedAnswers,
};

/// A driver, real or simulated.
pub trait Source: Send + Sync {
    /// What the readings come from.
    fn platform(&self) -> Platform;

    /// How many GPUs there are, those that cannot be opened included.
    ///
    /// # Errors
    /// [`SourceError::NoDevice`] where there is none, or the driver's own error.
    fn device_count(&self) -> Result<u32, SourceError>;

    /// Opens one GPU. It is called on the thread that will read it.
    ///
    /// # Errors
    /// [`DeviceError`] as the driver gives it.
    fn open(&self, index: u32) -> Result<Box<dyn Device>, DeviceError>;

    /// Whether the system has switched this GPU off to save power. It is called before [`open`](Self::open), which would
    /// wake it, and asks the system, never the driver. `sys_root` is `/sys` but in tests.
    fn is_asleep(&self, index: u32, sys_root: &Path) -> bool;

    /// Who waits for what the driver reports by itself; `None` where it reports nothing.
    fn reporter(&self) -> Option<Box<dyn Reporter>>;

    /// How these GPUs are linked. It is called on a thread of its own, since it asks about two GPUs at once, of which
    /// one may hang.
    fn links(&self, gpus: &[u32]) -> Vec<GpuLink>;
}

/// One GPU, opened.
pub trait Device {
    /// Who it is.
    fn identity(&mut self) -> Gpu;

    /// Reads as much as `depth` says into `sample`, whose `index`, `uuid`, `at_ms` and `health` belong to the sampler.
    ///
    /// # Errors
    /// [`DeviceError::Lost`] where the whole GPU is gone. A single reading that fails is absent in the sample instead.
    fn read(&mut self, sample: &mut GpuSample, depth: ReadDepth) -> Result<(), DeviceError>;

    /// Reads what changes slowly into `details`, whose `index`, `uuid` and `at_ms` belong to the sampler.
    ///
    /// # Errors
    /// [`DeviceError::Lost`] where the whole GPU is gone.
    fn details(&mut self, details: &mut GpuDetails) -> Result<(), DeviceError>;

    /// Asks the driver what only its vendor's own tools show: all of it, or what changes.
    fn ask_for_tools(&mut self, all: bool) {
        let _ = all;
    }

    /// What the driver answered, call by call, for programs that do as its vendor's own tools do: all that is known, or
    /// what was answered since the last [`read`](Self::read) began. `None` where there are no such programs.
    fn answers(&mut self, all: bool) -> Option<CachedAnswers> {
        let _ = all;
        None
    }

    /// Takes out of the driver's own buffers what has come since the last call. Their `index` and `uuid` are this
    /// GPU's.
    fn traces(&mut self) -> Vec<Trace>;
}

/// How much of a sample is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadDepth {
    /// All of it.
    Full,
    /// Without what a one-shot command has no use for: rates, which need two readings, and energy and thermal margin,
    /// which cost the driver more time than all the rest.
    OneShot,
    /// The same with energy, for measuring a load.
    Metered,
}

/// Waits for what the driver reports by itself, on a thread of its own.
pub trait Reporter: Send {
    /// Reports this GPU too, from now on. It has been opened, maybe again.
    fn add(&mut self, gpu: u32);

    /// Blocks until there is something to report, and about a second at most: the GPU's index and what it is.
    fn wait(&mut self) -> Option<(u32, Notice)>;
}

/// What the driver reports by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Notice {
    /// An error with NVIDIA's number (`nvmlEventTypeXidCriticalError`).
    Xid(u32),
    /// A memory error that was corrected (`nvmlEventTypeSingleBitEccError`).
    EccCorrected,
    /// A memory error that was not (`nvmlEventTypeDoubleBitEccError`).
    EccUncorrected,
    /// The power supply changed (`nvmlEventTypePowerSourceChange`).
    PowerSource,
    /// MIG was switched (`nvmlEventMigConfigChange`).
    MigChanged,
}

/// Why a whole GPU cannot be opened or read.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum DeviceError {
    /// It has fallen off the bus.
    #[error("GPU lost")]
    Lost,
    /// The driver was unloaded or replaced underneath the library: nothing can be read until another process loads the
    /// library anew.
    #[error("the driver is gone (NVML error {code})")]
    DriverGone {
        /// NVML's return code: 1 uninitialized, 9 driver not loaded, 18 library and driver do not match.
        code: u32,
    },
    /// Another reason.
    #[error("{0}")]
    Failed(Absence),
}

/// Why there is no source.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum SourceError {
    /// The library is not there or cannot be loaded.
    #[error(
        "cannot load NVIDIA's management library {library}: {cause}; install the NVIDIA driver's utilities, \
         point --nvml-lib at libnvidia-ml.so.1, or try simulated GPUs with --source sim"
    )]
    NoLibrary {
        /// What was tried.
        library: String,
        /// What the loader said.
        cause: String,
    },
    /// The library is there, the kernel module is not (`NVML_ERROR_DRIVER_NOT_LOADED`).
    #[error(
        "NVIDIA's library is installed, but its kernel driver is not running; load it with `modprobe nvidia` or \
         reinstall it for this kernel, or try simulated GPUs with --source sim"
    )]
    NoDriver,
    /// Library and driver are there, a GPU is not.
    #[error(
        "the NVIDIA driver runs, but it sees no GPU; check `lspci | grep -i nvidia`, and in a container that it was \
         started with GPUs (docker run --gpus all), or try simulated GPUs with --source sim"
    )]
    NoDevice,
    /// The driver was upgraded underneath the library (`NVML_ERROR_LIB_RM_VERSION_MISMATCH`).
    #[error(
        "the NVIDIA library and the running kernel driver are of different versions; reboot, or reload the driver's \
         kernel modules"
    )]
    VersionMismatch,
    /// The device files may not be opened (`NVML_ERROR_NO_PERMISSION`).
    #[error("the NVIDIA driver refuses this user; check the permissions of /dev/nvidia* and the user's groups")]
    NoPermission,
    /// Anything else.
    #[error("the NVIDIA driver answers with NVML error {code}; see `dmesg | grep -i nvrm`")]
    Driver {
        /// NVML's return code.
        code: u32,
    },
    /// The system refuses the threads that reading takes.
    #[error(
        "cannot start a thread for each GPU: {cause}; raise the limit (`ulimit -u`, or the container's pids limit)"
    )]
    NoThread {
        /// What the system said.
        cause: String,
    },
    /// A simulated source was asked for that cannot be built.
    #[error("{0}")]
    BadScenario(String),
}
