//! The sources of readings, one per vendor, and a simulation.
//!
//! A [`Source`] knows how many GPUs there are. A [`Device`] is one GPU. Each is opened and read on
//! its own thread, so that a slow or hung GPU does not delay the others.

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
    /// Returns the names and versions of the drivers, and whether they are simulated.
    fn platform(&self) -> Platform;

    /// Returns the number of GPUs, including those that cannot be opened.
    ///
    /// # Errors
    /// Returns [`SourceError::NoDevice`] if there is no GPU, or the driver's own error.
    fn device_count(&self) -> Result<u32, SourceError>;

    /// Opens one GPU. It is called on the thread that will read the GPU, and on another thread that
    /// only needs the GPU's identity.
    ///
    /// # Errors
    /// Returns the driver's error as a [`DeviceError`].
    fn open(&self, index: u32) -> Result<Box<dyn Device>, DeviceError>;

    /// Returns `true` if the system has powered this GPU down. This must be called before
    /// [`open`](Self::open), which would wake the GPU. It reads `sys_root`, which is `/sys` except
    /// in tests, and never asks the driver.
    fn is_asleep(&self, index: u32, sys_root: &Path) -> bool;

    /// Returns the identity of a GPU that is not open, as far as it can be read without asking the
    /// driver or waking the GPU. All other fields are absent with this reason.
    fn identify_closed(&self, index: u32, reason: &Absence) -> Gpu {
        Gpu {
            vendor_index: Some(index),
            ..Gpu::unidentified(index, reason)
        }
    }

    /// Returns a reporter of the driver's events, or `None` if the driver reports none.
    fn reporter(&self) -> Option<Box<dyn Reporter>>;

    /// Opens readers of the driver's future errors in the kernel log at `path`. Returns none if the
    /// log cannot be read.
    fn error_logs(&self, path: &Path) -> Vec<Box<dyn ErrorLog>>;

    /// Returns the links between these GPUs. It is called on its own thread, because a query about
    /// two GPUs can hang if one of them does.
    fn links(&self, gpus: &[u32]) -> Vec<GpuLink>;
}

/// An open GPU of any vendor.
pub trait Device {
    /// Returns the GPU's identity, such as its name, UUID and PCI bus ID.
    fn identity(&mut self) -> Gpu;

    /// Returns `true` if the driver stays loaded for the GPU when nobody uses it. Opening such a
    /// GPU takes milliseconds.
    fn stays_open(&mut self) -> bool {
        true
    }

    /// Reads the parts of a sample that `depth` selects. The sampler sets `index`, `uuid`, `at_ms`
    /// and `health` itself.
    ///
    /// # Errors
    /// Returns [`DeviceError::Lost`] if the whole GPU is gone. If a single reading fails, only that
    /// reading is absent.
    fn read(&mut self, sample: &mut GpuSample, depth: ReadDepth) -> Result<(), DeviceError>;

    /// Reads the slowly changing fields into `details`. The sampler sets `index`, `uuid` and
    /// `at_ms` itself. After a [`read`](Self::read) with `Unwatched` depth, values that are
    /// expensive to read may be older.
    ///
    /// # Errors
    /// Returns [`DeviceError::Lost`] if the whole GPU is gone.
    fn details(&mut self, details: &mut GpuDetails) -> Result<(), DeviceError>;

    /// Queries the driver for values that only the vendor's own tools show: all of them, or those
    /// that change.
    fn query_for_tools(&mut self, all: bool) {
        let _ = all;
    }

    /// Returns a reader of the driver's answers for the vendor's own tools, or `None` if there are
    /// no such tools.
    fn answers(&self) -> Option<AnswersReader> {
        None
    }

    /// Returns the new contents of the driver's sample buffers since the last call, with this GPU's
    /// `index` and `uuid`.
    fn traces(&mut self) -> Vec<Trace>;

    /// Returns the errors that the last readings found, each once.
    fn take_errors(&mut self) -> Vec<DriverError> {
        Vec::new()
    }
}

/// The amount that is read for a sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadDepth {
    /// The depth of a complete reading.
    Full,
    /// The depth while nobody watches. Fields that take the driver much time are read only if
    /// history needs them, or if a condition cannot be evaluated without them. Otherwise they keep
    /// their last value and its time.
    Unwatched {
        /// Whether this is the last sample of a history step.
        closes_step: bool,
    },
    /// The depth of one-shot commands. It excludes rates, which need two readings, and energy and
    /// thermal margin, which take the driver more time than everything else together.
    OneShot,
    /// The depth of one-shot commands that measure a load: [`OneShot`](Self::OneShot) with energy.
    Metered,
}

/// A receiver of the driver's events, which runs on its own thread.
pub trait Reporter: Send {
    /// Starts to report events of this GPU, which has been opened, possibly not for the first time.
    fn add(&mut self, gpu: u32);

    /// Blocks until there is an event, but for about one second at most. Returns the GPU's index
    /// and the event.
    fn wait(&mut self) -> Option<(u32, Notice)>;
}

/// An event that the driver reports on its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Notice {
    /// An error, with the vendor's code.
    Error {
        /// The vendor's error code.
        code: u32,
    },
    /// A memory error that was corrected.
    EccCorrected,
    /// A memory error that was not corrected.
    EccUncorrected,
    /// The power supply changed.
    PowerSource,
    /// The partitions of the GPU changed.
    Partitions,
}
