//! Threads that wait for driver events, kernel log messages and the links between GPUs, and the
//! messages between the sampler and all its threads.

use std::{
    path::PathBuf,
    sync::{
        Arc,
        mpsc::{self, Sender, TryRecvError},
    },
};

use crate::{
    cpu_use::CpuUse,
    model::{Gpu, GpuDetails, GpuLink, GpuSample, ProcessRef, Trace},
    thread,
    vendor::{DeviceError, DriverError, LoggedError, Notice, Source, SourceError},
};

/// Starts a thread, which is abandoned if it hangs. A panic in the thread terminates the process.
pub(super) fn spawn(name: &str, body: impl FnOnce() + Send + 'static) -> Result<(), SourceError> {
    thread::spawn(name, body).map_err(|error| SourceError::NoThread {
        cause: error.to_string(),
    })
}

/// Starts a thread that forwards the driver's events. The indices of opened GPUs must be sent on
/// the returned channel. The object that reports events is also created in the thread, because the
/// driver may hang during its creation.
pub(super) fn start_driver_event_thread(
    source: &Arc<dyn Source>,
    sender: Sender<Message>,
) -> Sender<u32> {
    let (opened, to_add) = mpsc::channel();
    let source = Arc::clone(source);
    let body = move || {
        let Some(mut reporter) = source.reporter() else {
            return;
        };
        // There are no events until the first GPU has been opened.
        let Ok(first) = to_add.recv() else { return };
        reporter.add(first);
        loop {
            match to_add.try_recv() {
                Ok(gpu) => reporter.add(gpu),
                Err(TryRecvError::Disconnected) => return,
                Err(TryRecvError::Empty) => {
                    if let Some((index, notice)) = reporter.wait_for_event()
                        && sender.send(Message::Notice { index, notice }).is_err()
                    {
                        return;
                    }
                }
            }
        }
    };
    // The error is ignored: if the thread cannot be started, only events are missing.
    let _ = spawn("gpu-events", body);
    opened
}

/// Starts threads that read the drivers' errors from the kernel log. Returns `true` if the log can
/// be read.
pub(super) fn start_error_log_threads(
    source: &dyn Source,
    path: Option<&PathBuf>,
    sender: &Sender<Message>,
) -> bool {
    let logs = path.map_or_else(Vec::new, |path| source.error_logs(path));
    let started = logs.into_iter().map(|mut log| {
        let sender = sender.clone();
        let body = move || {
            while let Some(error) = log.wait_for_error() {
                if sender.send(Message::Logged(error)).is_err() {
                    return;
                }
            }
            let _ = sender.send(Message::LogEnded);
        };
        spawn("kernel-log", body).is_ok()
    });
    started.fold(false, |any, is_started| any | is_started)
}

/// Starts a thread that reads the links between the given GPUs. If a GPU hangs, the thread sends no
/// links, but no other thread waits for them.
pub(super) fn start_link_search(source: &Arc<dyn Source>, gpus: Vec<u32>, sender: Sender<Message>) {
    let source = Arc::clone(source);
    let body = move || {
        let _ = sender.send(Message::Links(source.find_links(&gpus)));
    };
    // The error is ignored: if the thread cannot be started, only links are missing.
    let _ = spawn("gpu-links", body);
}

// Messages from the reading threads to the sampler, and the sampler's queries to these threads.

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
    /// The CPU use of the GPU's processes, if it is known.
    pub(super) cpu_use: CpuUse,
    /// The details, if they were read at this tick.
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
