//! The threads beside those that read: they wait for something to happen.

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

/// A thread that is left behind where it hangs; a panic in it ends the process.
pub(super) fn spawn(name: &str, body: impl FnOnce() + Send + 'static) -> Result<(), SourceError> {
    thread::spawn(name, body).map_err(|error| SourceError::NoThread {
        cause: error.to_string(),
    })
}

/// Passes on what the driver reports. The GPUs that come through the channel are those that have
/// been opened. It starts on its own thread, too, since the driver may hang in it.
pub(super) fn follow_driver(source: &Arc<dyn Source>, sender: Sender<Message>) -> Sender<u32> {
    let (opened, to_add) = mpsc::channel();
    let source = Arc::clone(source);
    let body = move || {
        let Some(mut reporter) = source.reporter() else {
            return;
        };
        // Nothing comes before there is a GPU to report of.
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
    // A machine that has no thread left for it does without.
    let _ = spawn("gpu-events", body);
    opened
}

/// Follows the drivers' errors in the kernel's log. Returns `true` if it can be read.
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

/// Asks how these GPUs are linked. A GPU that hangs in it holds up nobody, and there is no answer.
pub(super) fn find_links(source: &Arc<dyn Source>, gpus: Vec<u32>, sender: Sender<Message>) {
    let source = Arc::clone(source);
    let body = move || {
        let _ = sender.send(Message::Links(source.links(&gpus)));
    };
    // A machine that has no thread left for it does without.
    let _ = spawn("gpu-links", body);
}
