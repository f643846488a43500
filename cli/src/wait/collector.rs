//! A `gpumon collect` of this waiter's own, for a machine on which no server runs.
//!
//! Another process reads the driver, so that one which hangs there, beyond rescue perhaps, keeps this one neither from
//! giving up in time nor from becoming another program.

use std::{
    collections::BTreeMap,
    ffi::OsString,
    io::{BufRead, BufReader, Write},
    process::{Child, ChildStdin, Stdio},
    sync::mpsc::{self, Receiver, RecvTimeoutError},
    thread,
    time::{Duration, Instant},
};

use anyhow::Context;
use gpumon_probe::{child, model::Record};

use super::candidate::View;
use crate::{exit::Failure, options::SourceArgs};

/// How long it may take to end before it is left behind.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(super) struct Collector {
    child: Child,
    requests: Option<ChildStdin>,
    records: Receiver<Record>,
    view: Option<View>,
    interval: Duration,
}

pub(super) enum Received {
    View(Box<View>),
    Timeout,
    /// It has ended, before it told anything with this exit code.
    Ended(Option<u8>),
}

impl Collector {
    pub(super) fn start(source: &SourceArgs, interval: Duration) -> Result<Self, Failure> {
        let program = std::env::current_exe().context("cannot find gpumon's own program file")?;
        let arguments = ["collect", "--supervised", "--hide-commands", "--interval-ms"].map(OsString::from);
        let mut child = child::command(program)
            .args(source.to_arguments())
            .args(arguments)
            .arg(interval.as_millis().to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .context("cannot start a gpumon collect")?;
        let (sender, records) = mpsc::channel();
        let (requests, output) = (child.stdin.take(), child.stdout.take());
        thread::spawn(move || {
            for line in output.into_iter().flat_map(|output| BufReader::new(output).lines()).map_while(Result::ok) {
                // A line that is none of ours tells nothing; the next may.
                if let Ok(record) = Record::decode(&line)
                    && sender.send(record).is_err()
                {
                    return;
                }
            }
        });
        Ok(Self { child, requests, records, view: None, interval })
    }

    pub(super) fn set_interval(&mut self, interval: Duration) {
        if interval != self.interval
            && let Some(requests) = &mut self.requests
        {
            self.interval = interval;
            // One that has ended is noticed when it is listened to.
            let _ = writeln!(requests, "{{\"interval_ms\":{}}}", interval.as_millis());
        }
    }

    /// Waits for the next sample, and takes the newest that has come.
    pub(super) fn receive(&mut self, patience: Duration) -> Received {
        let deadline = Instant::now() + patience;
        let mut has_sample = false;
        loop {
            let left = if has_sample { Duration::ZERO } else { deadline.saturating_duration_since(Instant::now()) };
            match self.records.recv_timeout(left) {
                Ok(record) => has_sample |= self.ingest(record),
                Err(RecvTimeoutError::Disconnected) if !has_sample => return Received::Ended(self.exit_code()),
                Err(_) => break,
            }
        }
        match &self.view {
            Some(view) if has_sample => Received::View(Box::new(view.clone())),
            _ => Received::Timeout,
        }
    }

    /// Ends it, so that the driver is let go of.
    pub(super) fn stop(mut self) {
        drop(self.requests.take());
        // One that has ended already is as good.
        let _ = self.child.kill();
        let deadline = Instant::now() + SHUTDOWN_TIMEOUT;
        while matches!(self.child.try_wait(), Ok(None)) && Instant::now() < deadline {
            thread::sleep(Duration::from_millis(2));
        }
    }

    /// True where it was a sample.
    fn ingest(&mut self, record: Record) -> bool {
        match (record, &mut self.view) {
            (Record::Inventory(inventory), Some(view)) => view.inventory = inventory,
            (Record::Inventory(inventory), view @ None) => {
                *view = Some(View { inventory, gpus: Vec::new(), details: BTreeMap::new() });
            }
            (Record::Details(details), Some(view)) => drop(view.details.insert(details.index, details)),
            (Record::Sample(sample), Some(view)) => {
                view.gpus = sample.gpus;
                return true;
            }
            _ => {}
        }
        false
    }

    /// The code with which it failed at once; one that has told something may do so again.
    fn exit_code(&mut self) -> Option<u8> {
        let status = self.child.wait().ok()?;
        let code = status.code().and_then(|code| u8::try_from(code).ok()).filter(|code| *code > 0);
        code.filter(|_| self.view.as_ref().is_none_or(|view| view.gpus.is_empty()))
    }
}
