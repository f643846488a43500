//! Messages from the reading threads to the sampler, and the sampler's queries to these threads.

use crate::{
    model::{Gpu, GpuDetails, GpuLink, GpuSample, ProcessRef, Trace},
    vendor::{DeviceError, DriverError, LoggedError, Notice},
};

/// A message from a thread to the sampler.
pub(super) enum Message {
    /// A GPU's response to a query.
    Answer { index: u32, outcome: Outcome },
    /// A GPU was read for the first time, but the owners of its processes are still being looked
    /// up. `stays_open` is `true` if the driver keeps unused GPUs open.
    FirstRead { index: u32, stays_open: bool },
    /// A GPU was opened or reopened.
    Opened { index: u32 },
    /// The driver sent a notice about a GPU.
    Notice { index: u32, notice: Notice },
    /// The driver logged an error.
    Logged(LoggedError),
    /// The kernel log can no longer be read.
    LogEnded,
    /// The links between the GPUs.
    Links(Vec<GpuLink>),
}

/// The result of a query.
pub(super) enum Outcome {
    /// The GPU was read.
    Read(Box<Readings>),
    /// The GPU sleeps, and was not woken. The identity is included if it has not been reported
    /// before.
    Asleep(Option<Box<Gpu>>),
    /// The GPU could not be read.
    Failed(DeviceError),
}

/// All readings of a GPU at one tick.
pub(super) struct Readings {
    /// The identity, if it has changed.
    pub(super) identity: Option<Gpu>,
    pub(super) sample: GpuSample,
    /// The processes that do not fit into the sample.
    pub(super) omitted: Vec<ProcessRef>,
    /// The details, if they were due.
    pub(super) details: Option<GpuDetails>,
    /// Values that the driver recorded since the previous tick.
    pub(super) traces: Vec<Trace>,
    /// Driver errors found in the readings.
    pub(super) errors: Vec<DriverError>,
}

/// A query from the sampler to a GPU's thread.
#[derive(Debug, Clone, Copy)]
pub(super) struct Query {
    /// Whether to read the details immediately, even if they are not due, because the driver
    /// reported a change.
    pub(super) details_now: bool,
}
