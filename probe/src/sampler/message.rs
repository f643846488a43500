//! Messages from the reading threads to the sampler, and its queries to them.

use crate::{
    model::{Gpu, GpuDetails, GpuLink, GpuSample, ProcessRef, Trace},
    vendor::{DeviceError, DriverError, LoggedError, Notice},
};

/// From a thread to the sampler.
pub(super) enum Message {
    /// A GPU was asked, and this came of it.
    Answer { index: u32, outcome: Outcome },
    /// A GPU was read for the first time, and the owners of its processes are looked up.
    /// `stays_open`: whether the driver keeps it open when nobody uses it.
    FirstRead { index: u32, stays_open: bool },
    /// A GPU was opened, or opened again.
    Opened { index: u32 },
    /// The driver reported something of a GPU by itself.
    Notice { index: u32, notice: Notice },
    /// The driver logged an error.
    Logged(LoggedError),
    /// The kernel's log can no longer be read.
    LogEnded,
    /// How the GPUs are linked.
    Links(Vec<GpuLink>),
}

/// What came of asking a GPU.
pub(super) enum Outcome {
    /// It was read.
    Read(Box<Readings>),
    /// The GPU sleeps, and was not woken. It has an identity if that was not known before.
    Asleep(Option<Box<Gpu>>),
    /// It could not be read.
    Failed(DeviceError),
}

/// All that was read of a GPU at one tick.
pub(super) struct Readings {
    /// Who it is, where that has changed.
    pub(super) identity: Option<Gpu>,
    pub(super) sample: GpuSample,
    /// The processes for which the sample has no room.
    pub(super) omitted: Vec<ProcessRef>,
    /// What changes slowly, where it was time for that.
    pub(super) details: Option<GpuDetails>,
    /// What the driver recorded by itself since the tick before.
    pub(super) traces: Vec<Trace>,
    /// Errors that were found in the readings.
    pub(super) errors: Vec<DriverError>,
}

/// What the sampler asks a GPU's thread for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Query {
    /// Read what changes slowly at once, whether or not it is time for that: the driver said that
    /// it has changed.
    pub(super) details_now: bool,
}
