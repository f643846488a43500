//! Threads that wait for events of drivers and of the kernel's log.

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

/// Starts a thread that is abandoned if it hangs. A panic in the thread terminates the process.
pub(super) fn spawn(name: &str, body: impl FnOnce() + Send + 'static) -> Result<(), SourceError> {
    thread::spawn(name, body).map_err(|error| SourceError::NoThread {
        cause: error.to_string(),
    })
}

/// Starts a thread that forwards the driver's events. GPUs that were opened are sent to it through
/// the returned channel. The event source is also created in the thread, because the driver may
/// hang in that call.
pub(super) fn follow_driver(source: &Arc<dyn Source>, sender: Sender<Message>) -> Sender<u32> {
    let (opened, to_add) = mpsc::channel();
    let source = Arc::clone(source);
    let body = move || {
        let Some(mut reporter) = source.reporter() else {
            return;
        };
        // There are no events before the first GPU was opened.
        let Ok(first) = to_add.recv() else { return };
        reporter.add(first);
        loop {
            match to_add.try_recv() {
                Ok(gpu) => reporter.add(gpu),
                Err(TryRecvError::Disconnected) => return,
                Err(TryRecvError::Empty) => {
                    if let Some((index, notice)) = reporter.wait()
                        && sender.send(Message::Notice { index, notice }).is_err()
                    {
                        return;
                    }
                }
            }
        }
    };
    // The error is ignored: events are missing if the machine cannot start a thread.
    let _ = spawn("gpu-events", body);
    opened
}

/// Follows the drivers' errors in the kernel's log. Returns `true` if the log can be read.
pub(super) fn follow_log(
    source: &dyn Source,
    path: Option<&PathBuf>,
    sender: &Sender<Message>,
) -> bool {
    let logs = path.map_or_else(Vec::new, |path| source.error_logs(path));
    let started = logs.into_iter().map(|mut log| {
        let sender = sender.clone();
        let body = move || {
            while let Some(error) = log.wait() {
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

/// Starts a thread that reads the links between these GPUs. If a GPU hangs, there is no answer, and
/// nothing waits for it.
pub(super) fn find_links(source: &Arc<dyn Source>, gpus: Vec<u32>, sender: Sender<Message>) {
    let source = Arc::clone(source);
    let body = move || {
        let _ = sender.send(Message::Links(source.links(&gpus)));
    };
    // The error is ignored: links are missing if the machine cannot start a thread.
    let _ = spawn("gpu-links", body);
}
