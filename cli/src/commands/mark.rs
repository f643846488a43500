//! `gpumon mark`: a moment that a script wants to see on charts.

use std::{
    convert::Infallible,
    io,
    sync::mpsc::{self, Receiver, SyncSender},
    time::Duration,
};

use gpumon_probe::model::CostMark;
use serde_json::{Value, json};

use crate::{background::spawn, exit::Result, local::ServerArgs};

/// Mark this moment on the charts of a running server
///
/// The mark stands on the charts of everybody who looks at the server, and in its list of events,
/// with the name of the user. The server remembers the last 64 marks until it ends, and with
/// --data-dir all of them for a year.
#[derive(Debug, clap::Args)]
#[command(after_long_help = NOTES)]
pub(crate) struct MarkArgs {
    /// What to write there, in up to 100 characters
    text: String,

    #[command(flatten)]
    server: ServerArgs,
}

const NOTES: &str = "\
Examples:
  gpumon mark 'epoch 3'
      Mark the beginning of an epoch. 20 marks may come at once, and then one per second.
  gpumon mark 'sweep starts'; python sweep.py; gpumon mark 'sweep ended'
      Mark where a program starts and ends.

Environment:
  GPUMON_CONTROL  default of --control

Exit codes: 0 success, 1 no server or refused by it, 2 invalid argument";

/// So many wait for a server; it takes fewer at once.
const MOST_WAITING: usize = 64;

/// A server that answers does so in a few milliseconds.
const PATIENCE: Duration = Duration::from_millis(200);

pub(crate) fn run(args: &MarkArgs) -> Result {
    send(&args.server, &json!({ "text": args.text }))
}

/// Has a running server know marks, too, where there is one; nobody waits for it.
pub(crate) struct Forwarder {
    server: ServerArgs,
    /// Where marks go, and what hangs up when all are sent; from the first mark on.
    way: Option<(SyncSender<CostMark>, Receiver<Infallible>)>,
}

impl Forwarder {
    pub(crate) fn new(server: &ServerArgs) -> Self {
        Self {
            server: server.clone(),
            way: None,
        }
    }

    /// One that a server which does not answer has no room for is on no chart.
    pub(crate) fn send(&mut self, mark: &CostMark) {
        if self.way.is_none() {
            self.way = self.start().ok();
        }
        if let Some((marks, _)) = &self.way {
            let _ = marks.try_send(mark.clone());
        }
    }

    fn start(&self) -> io::Result<(SyncSender<CostMark>, Receiver<Infallible>)> {
        let (marks, waiting) = mpsc::sync_channel(MOST_WAITING);
        let (running, ended) = mpsc::channel();
        let server = self.server.clone();
        let work = move || {
            for CostMark { at_ms, text } in waiting {
                let _ = send(&server, &json!({ "text": text, "at_ms": at_ms }));
            }
            drop(running);
        };
        spawn("forward", work)?;
        Ok((marks, ended))
    }

    /// Waits a moment for those that are not sent yet, since they end with this process.
    pub(crate) fn finish(&mut self) {
        if let Some((marks, ended)) = self.way.take() {
            drop(marks);
            let _ = ended.recv_timeout(PATIENCE);
        }
    }
}

fn send(server: &ServerArgs, mark: &Value) -> Result {
    let body = mark.to_string();
    server
        .request("POST", "/api/v1/marks", &body, "takes no marks")
        .map(drop)
}
