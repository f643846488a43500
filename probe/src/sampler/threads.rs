//! Threads that wait for driver events and kernel log messages.

use std::{
    path::PathBuf,
    sync::{
        Arc,
        mpsc::{self, Sender, TryRecvError},
    },
};

use super::message::Message;
use crate::{
    thread,
    vendor::{Source, SourceError},
};

/// Starts a thread, which is abandoned if it hangs. A panic in the thread terminates the process.
pub(super) fn spawn(name: &str, body: impl FnOnce() + Send + 'static) -> Result<(), SourceError> {
    thread::spawn(name, body).map_err(|error| SourceError::NoThread {
        cause: error.to_string(),
    })
}

/// Starts a thread that forwards the driver's events. The indices of opened GPUs must be sent on
/// the returned channel. The event source is also created in the thread, because the driver may
/// hang in that call.
pub(super) fn follow_driver(source: &Arc<dyn Source>, sender: Sender<Message>) -> Sender<u32> {
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
pub(super) fn follow_log(
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

/// Starts a thread that reads the links between the given GPUs. If a GPU hangs, no links are sent,
/// but nothing waits for them.
pub(super) fn start_link_search(source: &Arc<dyn Source>, gpus: Vec<u32>, sender: Sender<Message>) {
    let source = Arc::clone(source);
    let body = move || {
        let _ = sender.send(Message::Links(source.find_links(&gpus)));
    };
    // The error is ignored: if the thread cannot be started, only links are missing.
    let _ = spawn("gpu-links", body);
}
