//! The sources of readings: one per vendor, and a simulation.
//!
//! A [`Source`] reports the number of GPUs. A [`Device`] is one open GPU. Each GPU is opened and
//! read on its own thread, so that a slow or hung GPU does not delay the others.

pub mod amd;
mod choice;
mod diagnostics;
mod driver_error;
mod drm;
pub mod fuzzing;
pub mod intel;
mod kernel_log;
mod machine;
pub mod nvml;
pub mod sim;

use std::{
    collections::BTreeMap,
    ffi::OsString,
    fmt,
    path::{Path, PathBuf},
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use nvml::query::CachedAnswers;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::{
    bounded,
    cpu_use::ProcessUse,
    model::{
        Absence, Absent as _, Driver, Gpu, GpuDetails, GpuLink, GpuSample, Health, MemoryKind,
        MemorySample, Platform, Process, Reading, Trace, Vendor,
    },
};

pub use choice::{BadSource, SourceChoice};
pub use diagnostics::{
    DeviceNode, DriverFinding, Explanation, FileContent, FilePart, KERNEL_DRIVERS, SystemFile,
    check_drivers, check_kernel_log, collect_card_files, container_device_options, describe_error,
    device_nodes, error_codes, explain_absence, find_logged_driver_errors, log_advice,
    read_kernel_messages, reset_advice, version_mismatch_advice,
};
pub use driver_error::{DriverError, ErrorInfo, ErrorLog, KERNEL_LOG, LoggedError};
pub(crate) use machine::MachineSource;

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

    /// Returns the identity of a GPU that is not open, with the fields that can be read without
    /// calling the driver or waking the GPU. All other fields are absent, with `reason` as the
    /// reason.
    fn identify_closed(&self, index: u32, reason: &Absence) -> Gpu {
        Gpu {
            vendor_index: Some(index),
            ..Gpu::new_unidentified(index, reason)
        }
    }

    /// Returns a reporter for the driver's events, or `None` if the driver does not report events.
    fn reporter(&self) -> Option<Box<dyn Reporter>> {
        None
    }

    /// Opens readers for new driver errors in the kernel log at `path`. Returns an empty vector if
    /// the log cannot be read.
    fn error_logs(&self, path: &Path) -> Vec<Box<dyn ErrorLog>>;

    /// Returns the links between `gpus`. This is called on its own thread, because a query about
    /// two GPUs can hang if one of the GPUs does.
    fn find_links(&self, gpus: &[u32]) -> Vec<GpuLink> {
        let _ = gpus;
        Vec::new()
    }
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

    /// Returns a reader for the driver's responses about the values that the vendor's own tools
    /// show. Returns `None` if there are no such tools.
    fn answers_reader(&self) -> Option<AnswersReader> {
        None
    }

    /// Returns the values that the driver has added to its sample buffers since the last call. The
    /// traces have this GPU's `index` and `uuid`.
    fn take_traces(&mut self) -> Vec<Trace> {
        Vec::new()
    }

    /// Returns the CPU use of the GPU's processes if they are simulated. The CPU use of real
    /// processes is read from `/proc`.
    fn simulated_cpu_use(&self) -> Vec<ProcessUse> {
        Vec::new()
    }

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
    /// A reduced sample, used while nobody is watching. Fields that are expensive to read are read
    /// only if history or a condition needs them. Otherwise, they keep their last value and its
    /// time.
    Unwatched {
        /// Whether this is the last sample of a history step.
        closes_step: bool,
    },
    /// A sample for one-shot commands. It excludes rates, which need two readings. It also excludes
    /// energy and thermal margin, because the driver needs more time for them than for everything
    /// else together.
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
        /// The reason with which the GPU's readings are marked as absent.
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

/// The root folders and the library name that are used to find drivers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Roots {
    /// The NVML library's file name, if it is not the default.
    pub nvml_lib: Option<OsString>,
    /// The path of `/sys`, which is replaced in tests.
    pub sys: PathBuf,
    /// The path of `/proc`, which is replaced in tests and in containers that mount the host's
    /// `/proc` elsewhere.
    pub proc: PathBuf,
}

impl Default for Roots {
    fn default() -> Self {
        Self {
            nvml_lib: None,
            sys: "/sys".into(),
            proc: "/proc".into(),
        }
    }
}

/// Locks a mutex. If another thread has panicked while it held the lock, the data is used anyway.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Formats 128 bits as a UUID. The first 64 bits are in `high`.
fn format_uuid(high: u64, low: u64) -> String {
    let digits = format!("{high:016x}{low:016x}");
    let groups = [
        &digits[..8],
        &digits[8..12],
        &digits[12..16],
        &digits[16..20],
        &digits[20..],
    ];
    groups.join("-")
}

/// Returns the platform for a vendor whose driver is part of the kernel. `version` is the driver's
/// own version number, if it has one. Otherwise, the driver has the kernel's version.
fn make_kernel_driver_platform(vendor: Vendor, version: Option<String>) -> Platform {
    let kernel_version = || {
        let name = rustix::system::uname();
        name.release().to_string_lossy().into_owned()
    };
    Platform {
        is_simulated: false,
        drivers: vec![Driver {
            vendor,
            version: Reading::Now(version.unwrap_or_else(kernel_version)),
            library_version: Reading::NOT_SUPPORTED,
            cuda_version: Reading::NOT_SUPPORTED,
        }],
    }
}

/// The machine's memory in bytes. GPUs without their own memory use this memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct MachineMemory {
    total_bytes: u64,
    /// The memory that programs can still allocate, including caches that the kernel can free.
    available_bytes: u64,
}

impl MachineMemory {
    /// Reads `MemTotal` and `MemAvailable` from `meminfo` in `proc_root`, which is `/proc` except
    /// in tests.
    fn read(proc_root: &Path) -> Option<Self> {
        let text = bounded::read_text(proc_root.join("meminfo"), bounded::STAT_LIMIT).ok()?;
        let bytes = |key: &str| {
            let mut lines = text.lines();
            let value = lines.find_map(|line| line.strip_prefix(key))?;
            let kibibytes: u64 = value.trim().strip_suffix("kB")?.trim().parse().ok()?;
            kibibytes.checked_mul(1024)
        };
        Some(Self {
            total_bytes: bytes("MemTotal:")?,
            available_bytes: bytes("MemAvailable:")?,
        })
    }
}

impl GpuSample {
    /// Makes all readings absent, and keeps the GPU, the time, and the health.
    fn clear_readings(&mut self, reason: &Absence) {
        let (uuid, health) = (self.uuid.take(), self.health.clone());
        *self = Self::new_absent(self.index, uuid, self.at_ms, health, reason);
    }

    /// Replaces the GPU's memory readings with the machine's memory. The processes must be read
    /// first. Memory that other programs use counts as neither used nor free.
    fn set_memory_from_machine(&mut self, machine: Option<MachineMemory>) {
        let machine = Reading::from(machine.ok_or(Absence::Unknown));
        self.memory_kind = MemoryKind::Unified;
        self.memory = MemorySample {
            total_bytes: machine.clone().map(|own| own.total_bytes),
            free_bytes: machine.map(|own| own.available_bytes),
            used_bytes: self.sum_process_memory(),
            ..MemorySample::new_absent(&Absence::NotSupported)
        };
    }

    /// Returns the sum of the processes' known memory, in bytes.
    fn sum_process_memory(&self) -> Reading<u64> {
        let bytes = |process: &Process| process.memory_bytes.value().copied();
        let sum = |all: Vec<Process>| all.iter().filter_map(bytes).fold(0, u64::saturating_add);
        self.processes.clone().map(sum)
    }
}

impl GpuDetails {
    /// Makes all readings absent, and keeps the GPU and the time.
    fn clear_readings(&mut self, reason: &Absence) {
        *self = Self::new_absent(self.index, self.uuid.take(), self.at_ms, reason);
    }
}

/// A driver's raw responses about one GPU, in the format that the vendor's own tools use. Only the
/// vendor's module interprets them.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct VendorAnswers(CachedAnswers);

impl From<CachedAnswers> for VendorAnswers {
    fn from(answers: CachedAnswers) -> Self {
        Self(answers)
    }
}

/// A function that returns the latest responses about one GPU. The function can run on any thread,
/// because it reads from memory and does not call the driver, which may hang.
pub type AnswersReader = Box<dyn Fn() -> VendorAnswers + Send>;

/// The latest responses about all sampled GPUs.
#[derive(Default)]
pub struct LatestAnswers {
    readers: Mutex<BTreeMap<u32, AnswersReader>>,
    renumbered: AtomicBool,
}

impl LatestAnswers {
    /// Registers the reader for a GPU that has been opened.
    pub(crate) fn set_reader(&self, index: u32, reader: AnswersReader) {
        self.lock_readers().insert(index, reader);
    }

    /// Records that gpumon's GPU indices no longer match those of the driver.
    pub(crate) fn mark_renumbered(&self) {
        self.renumbered.store(true, Ordering::Relaxed);
    }

    /// Returns the responses about every GPU that has been opened.
    pub fn collect_answers(&self) -> DriverAnswers {
        let readers = self.lock_readers();
        let renumbered = self.renumbered.load(Ordering::Relaxed);
        DriverAnswers {
            renumbered,
            gpus: readers
                .iter()
                .map(|(index, read)| (*index, read()))
                .collect(),
        }
    }

    fn lock_readers(&self) -> MutexGuard<'_, BTreeMap<u32, AnswersReader>> {
        lock(&self.readers)
    }
}

impl fmt::Debug for LatestAnswers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.lock_readers().keys()).finish()
    }
}

/// The driver responses that a collector has received, as a single record.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct DriverAnswers {
    /// Whether gpumon's GPU indices differ from the driver's current indices.
    #[serde(default)]
    pub renumbered: bool,
    /// The index and the responses of each GPU.
    pub gpus: Vec<(u32, VendorAnswers)>,
}

/// The driver's responses about one GPU, and the GPU's health.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GpuAnswers {
    pub index: u32,
    pub health: Health,
    pub answers: VendorAnswers,
}
