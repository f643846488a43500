//! `gpumon mark`: marks the current time on charts, for use in scripts.

use std::{
    convert::Infallible,
    io,
    sync::mpsc::{self, Receiver, SyncSender},
    time::Duration,
};

use gpumon_probe::model::CostMark;
use serde_json::{Value, json};

use crate::{background::spawn_detached_thread, exit::Result, local_server::ServerArgs};

/// Mark this moment on the charts of a running server
///
/// All users of the server see the mark on charts and in the list of events, with the name of the
/// user. The server remembers the last 64 marks until it ends, and with --data-dir all of them for
/// a year.
#[derive(Debug, clap::Args)]
#[command(after_long_help = NOTES)]
pub(crate) struct MarkArgs {
    /// Text of the mark, up to 100 characters
    text: String,

    #[command(flatten)]
    server: ServerArgs,
}

const NOTES: &str = "\
Examples:
  gpumon mark 'epoch 3'
      Mark the beginning of an epoch. Up to 20 marks are accepted at once, then one per second.
  gpumon mark 'sweep starts'; python sweep.py; gpumon mark 'sweep ended'
      Mark where a program starts and ends.

Environment:
  GPUMON_CONTROL  default of --control

Exit codes: 0 success, 1 no server or request refused, 2 invalid argument";

/// The maximum number of marks that wait to be sent. A longer queue would be useless, because the
/// server accepts fewer marks at once.
const MAX_QUEUED: usize = 64;

/// The maximum time to wait for the server before exiting. A server normally responds in a few
/// milliseconds.
const FLUSH_TIMEOUT: Duration = Duration::from_millis(200);

pub(crate) fn run(args: &MarkArgs) -> Result {
    send_mark(&args.server, &json!({ "text": args.text }))
}

/// Forwards marks to a running server, if there is one, without blocking the caller.
pub(crate) struct MarkForwarder {
    server: ServerArgs,
    /// The queue of marks, and a channel that is closed when the last mark has been sent; `None`
    /// until a mark is queued.
    way: Option<(SyncSender<CostMark>, Receiver<Infallible>)>,
}

impl MarkForwarder {
    pub(crate) fn new(server: &ServerArgs) -> Self {
        Self {
            server: server.clone(),
            way: None,
        }
    }

    /// Queues a mark. The mark is dropped if the queue is full because the server does not respond.
    pub(crate) fn queue_mark(&mut self, mark: &CostMark) {
        if self.way.is_none() {
            self.way = self.start_sender().ok();
        }
        if let Some((marks, _)) = &self.way {
            let _ = marks.try_send(mark.clone());
        }
    }

    fn start_sender(&self) -> io::Result<(SyncSender<CostMark>, Receiver<Infallible>)> {
        let (marks, waiting) = mpsc::sync_channel(MAX_QUEUED);
        let (running, ended) = mpsc::channel();
        let server = self.server.clone();
        let work = move || {
            for CostMark { at_ms, text } in waiting {
                let _ = send_mark(&server, &json!({ "text": text, "at_ms": at_ms }));
            }
            drop(running);
        };
        spawn_detached_thread("forward", work)?;
        Ok((marks, ended))
    }

    /// Waits briefly until the queued marks are sent, because they would be lost when this process
    /// ends.
    pub(crate) fn wait_for_queued_marks(&mut self) {
        if let Some((marks, ended)) = self.way.take() {
            drop(marks);
            let _ = ended.recv_timeout(FLUSH_TIMEOUT);
        }
    }
}

fn send_mark(server: &ServerArgs, mark: &Value) -> Result {
    let body = mark.to_string();
    server
        .request("POST", "/api/v1/marks", &body, "does not support marks")
        .map(drop)
}
