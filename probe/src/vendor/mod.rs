//! Where readings come from.
//!
//! A [`Source`] knows how many GPUs there are; a [`Device`] is one of them, opened and read on a
//! thread of its own, so that a slow or hung GPU holds up nobody else.

pub mod amd;
mod answers;
mod checks;
mod choice;
mod driver_error;
mod drm;
mod error;
mod explain;
pub mod fuzzing;
pub mod intel;
mod kernel_log;
mod machine;
mod machine_memory;
pub mod nvml;
mod recording;
mod roots;
pub mod sim;
mod tasks;

pub use answers::{AnswersReader, DriverAnswers, GpuAnswers, LatestAnswers, VendorAnswers};
pub use checks::{DeviceNode, DriverFinding, check_driver_log, check_drivers, device_nodes};
pub use choice::{BadSource, SourceChoice};
pub use driver_error::{DriverError, ErrorInfo, ErrorLog, KERNEL_LOG, LoggedError};
pub use error::{DeviceError, SourceError};
pub use explain::{
    Explanation, KERNEL_DRIVERS, check_kernel_log, container_devices, describe_error, error_codes,
    explain_absence, kernel_messages, log_advice, reset_advice, version_mismatch_advice,
};
pub use recording::{FileContent, FilePart, SystemFile, record_files};
pub use roots::Roots;

pub(crate) use machine::MachineSource;
use machine_memory::MachineMemory;

use std::path::Path;

use crate::model::{Absence, Gpu, GpuDetails, GpuLink, GpuSample, Platform, Trace};

/// A driver, real or simulated.
pub trait Source: Send + Sync {
    /// What the readings come from.
    fn platform(&self) -> Platform;

    /// How many GPUs there are, those that cannot be opened included.
    ///
    /// # Errors
    /// [`SourceError::NoDevice`] where there is none, or the driver's own error.
    fn device_count(&self) -> Result<u32, SourceError>;

    /// Opens one GPU. It is called on the thread that will read the GPU, and on another thread that
    /// only identifies it.
    ///
    /// # Errors
    /// [`DeviceError`] as the driver gives it.
    fn open(&self, index: u32) -> Result<Box<dyn Device>, DeviceError>;

    /// Whether the system has switched this GPU off to save power. It is called before
    /// [`open`](Self::open), which would wake it, and asks the system, never the driver. `sys_root`
    /// is `/sys` but in tests.
    fn is_asleep(&self, index: u32, sys_root: &Path) -> bool;

    /// Returns the identity of a GPU that is not open, as far as the system has it without asking
    /// the driver or waking the GPU. The rest is absent for this reason.
    fn identify_closed(&self, index: u32, reason: &Absence) -> Gpu {
        Gpu {
            vendor_index: Some(index),
            ..Gpu::unidentified(index, reason)
        }
    }

    /// Waits for what the driver reports by itself; `None` where it reports nothing.
    fn reporter(&self) -> Option<Box<dyn Reporter>>;

    /// Follows the driver's errors in the kernel's log at `path`, from now on; none if the log
    /// cannot be read.
    fn error_logs(&self, path: &Path) -> Vec<Box<dyn ErrorLog>>;

    /// How these GPUs are linked. It is called on a thread of its own, since it asks about two GPUs
    /// at once, of which one may hang.
    fn links(&self, gpus: &[u32]) -> Vec<GpuLink>;
}

/// One GPU, opened.
pub trait Device {
    /// Who it is.
    fn identity(&mut self) -> Gpu;

    /// Whether the driver keeps it open when nobody uses it. Where it does, GPUs are opened in
    /// milliseconds.
    fn stays_open(&mut self) -> bool {
        true
    }

    /// Reads as much as `depth` says into `sample`, whose `index`, `uuid`, `at_ms` and `health`
    /// belong to the sampler.
    ///
    /// # Errors
    /// [`DeviceError::Lost`] where the whole GPU is gone. A single reading that fails is absent in
    /// the sample instead.
    fn read(&mut self, sample: &mut GpuSample, depth: ReadDepth) -> Result<(), DeviceError>;

    /// Reads what changes slowly into `details`, whose `index`, `uuid` and `at_ms` belong to the
    /// sampler. What of it is dear may be older where the last [`read`](Self::read) was one that
    /// nobody watches.
    ///
    /// # Errors
    /// [`DeviceError::Lost`] where the whole GPU is gone.
    fn details(&mut self, details: &mut GpuDetails) -> Result<(), DeviceError>;

    /// Queries the driver for what only its vendor's own tools show: all of it, or what changes.
    fn query_for_tools(&mut self, all: bool) {
        let _ = all;
    }

    /// Reads the driver's answers for its vendor's own tools; `None` where there are no such tools.
    fn answers(&self) -> Option<AnswersReader> {
        None
    }

    /// Takes out of the driver's own buffers what has come since the last call. Their `index` and
    /// `uuid` are this GPU's.
    fn traces(&mut self) -> Vec<Trace>;

    /// Returns the errors that were found in the last readings, each once.
    fn take_errors(&mut self) -> Vec<DriverError> {
        Vec::new()
    }
}

/// How much of a sample is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadDepth {
    /// All of it.
    Full,
    /// All of it, but what costs the driver much time only where history needs it, or a condition
    /// that could not be told otherwise: nobody watches. What is not read is as it was read last,
    /// with its time.
    Unwatched {
        /// Whether this is the last sample of a step of history.
        closes_step: bool,
    },
    /// Without what a one-shot command has no use for: rates, which need two readings, and energy
    /// and thermal margin, which cost the driver more time than all the rest.
    OneShot,
    /// The same with energy, for measuring a load.
    Metered,
}

/// Waits for what the driver reports by itself, on a thread of its own.
pub trait Reporter: Send {
    /// Reports this GPU too, from now on. It has been opened, maybe again.
    fn add(&mut self, gpu: u32);

    /// Blocks until there is something to report, and about a second at most: the GPU's index and
    /// what it is.
    fn wait(&mut self) -> Option<(u32, Notice)>;
}

/// What the driver reports by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Notice {
    /// An error, by the vendor's code.
    Error {
        /// The vendor's code.
        code: u32,
    },
    /// A memory error that was corrected.
    EccCorrected,
    /// A memory error that was not corrected.
    EccUncorrected,
    /// The power supply changed.
    PowerSource,
    /// The GPU was divided into other parts, or is no longer divided.
    Partitions,
}
