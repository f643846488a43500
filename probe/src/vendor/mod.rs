//! The sources of readings: one per vendor, and a simulation.
//!
//! A [`Source`] reports the number of GPUs. A [`Device`] is one open GPU. Each GPU is opened and
//! read on its own thread, so that a slow or hung GPU does not delay the others.

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
    Explanation, KERNEL_DRIVERS, check_kernel_log, container_device_options, describe_error,
    error_codes, explain_absence, log_advice, read_kernel_messages, reset_advice,
    version_mismatch_advice,
};
pub use recording::{FileContent, FilePart, SystemFile, record_files};
pub use roots::Roots;

pub(crate) use machine::MachineSource;
use machine_memory::MachineMemory;

use std::path::Path;

use crate::model::{Absence, Gpu, GpuDetails, GpuLink, GpuSample, Platform, Trace};

/// A real or simulated driver, which provides access to GPUs.
pub trait Source: Send + Sync {
    /// Returns the names and versions of the drivers, and whether they are simulated.
    fn platform(&self) -> Platform;

    /// Returns the number of GPUs, including those that cannot be opened.
    ///
    /// # Errors
    /// Returns [`SourceError::NoDevice`] if there is no GPU, or the driver's own error.
    fn device_count(&self) -> Result<u32, SourceError>;

    /// Opens a GPU. This is called on the thread that will read the GPU, and also on a thread that
    /// only needs the GPU's identity.
    ///
    /// # Errors
    /// Returns the driver's error as a [`DeviceError`].
    fn open(&self, index: u32) -> Result<Box<dyn Device>, DeviceError>;

    /// Returns `true` if the system has powered the GPU down. Callers must check this before
    /// [`open`](Self::open), which would wake the GPU. The check reads only `sys_root`, which is
    /// `/sys` except in tests, and never calls the driver.
    fn is_asleep(&self, index: u32, sys_root: &Path) -> bool;

    /// Returns the identity of a GPU that is not open, as far as it can be read without calling the
    /// driver or waking the GPU. All other fields are absent, with `reason` as the reason.
    fn identify_closed(&self, index: u32, reason: &Absence) -> Gpu {
        Gpu {
            vendor_index: Some(index),
            ..Gpu::new_unidentified(index, reason)
        }
    }

    /// Returns a reporter for the driver's events, or `None` if the driver does not report events.
    fn reporter(&self) -> Option<Box<dyn Reporter>>;

    /// Opens readers for new driver errors in the kernel log at `path`. Returns an empty vector if
    /// the log cannot be read.
    fn error_logs(&self, path: &Path) -> Vec<Box<dyn ErrorLog>>;

    /// Returns the links between `gpus`. This is called on its own thread, because a query about
    /// two GPUs can hang if one of the GPUs does.
    fn find_links(&self, gpus: &[u32]) -> Vec<GpuLink>;
}

/// An open GPU of any vendor.
pub trait Device {
    /// Returns the GPU's identity, such as its name, UUID and PCI bus ID.
    fn identify(&mut self) -> Gpu;

    /// Returns `true` if the driver keeps the GPU initialized while nobody uses it. Opening such a
    /// GPU takes only milliseconds.
    fn stays_open(&mut self) -> bool {
        true
    }

    /// Reads the parts of a sample that `depth` selects. The caller sets `index`, `uuid`, `at_ms`
    /// and `health`.
    ///
    /// # Errors
    /// Returns [`DeviceError::Lost`] if the whole GPU is gone. If a single reading fails, only that
    /// reading is absent.
    fn read(&mut self, sample: &mut GpuSample, depth: ReadDepth) -> Result<(), DeviceError>;

    /// Reads the slowly changing fields into `details`. The caller sets `index`, `uuid` and
    /// `at_ms`. After a [`read`](Self::read) with `Unwatched` depth, values that are expensive to
    /// read may be from an earlier call.
    ///
    /// # Errors
    /// Returns [`DeviceError::Lost`] if the whole GPU is gone.
    fn read_details(&mut self, details: &mut GpuDetails) -> Result<(), DeviceError>;

    /// Queries the driver for values that only the vendor's own tools show. If `all` is `false`,
    /// constant values are not queried again.
    fn run_tool_queries(&mut self, all: bool) {
        let _ = all;
    }

    /// Returns a reader for the driver's responses that the vendor's own tools need, or `None` if
    /// there are no such tools.
    fn answers_reader(&self) -> Option<AnswersReader> {
        None
    }

    /// Returns the contents that have been added to the driver's sample buffers since the last
    /// call, with this GPU's `index` and `uuid`.
    fn take_traces(&mut self) -> Vec<Trace>;

    /// Returns the errors found since the last call. Each error is returned only once.
    fn take_errors(&mut self) -> Vec<DriverError> {
        Vec::new()
    }
}

/// How much is read for a sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadDepth {
    /// A complete sample, including all fields.
    Full,
    /// A reduced sample for times when nobody is watching. Fields that are expensive to read are
    /// read only if history or a condition needs them. Otherwise, they keep their last value and
    /// its time.
    Unwatched {
        /// Whether this is the last sample of a history step.
        closes_step: bool,
    },
    /// A sample for one-shot commands. It excludes rates, which need two readings, and energy and
    /// thermal margin, which take the driver longer than everything else together.
    OneShot,
    /// A sample for one-shot commands that measure a load: the same as [`OneShot`](Self::OneShot),
    /// plus energy.
    Metered,
}

/// A receiver for the driver's events. It runs on its own thread.
pub trait Reporter: Send {
    /// Starts reporting events for a GPU that has just been opened. May be called again for the
    /// same GPU.
    fn add(&mut self, gpu: u32);

    /// Waits for an event, for at most about one second. Returns the GPU's index and the event, or
    /// `None` if there was no event.
    fn wait_for_event(&mut self) -> Option<(u32, Notice)>;
}

/// An event that the driver reports without a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Notice {
    /// An error, identified by the vendor's code.
    Error {
        /// The vendor's error code.
        code: u32,
    },
    /// A memory error that was corrected.
    EccCorrected,
    /// A memory error that was not corrected.
    EccUncorrected,
    /// The GPU's power supply changed.
    PowerSource,
    /// The GPU's partitions changed.
    Partitions,
}
