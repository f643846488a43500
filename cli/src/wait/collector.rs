//! A collector of this waiter's own: a driver that hangs keeps this one neither from giving up in time nor from becoming
//! another program.

use std::{
    collections::BTreeMap,
    io::{BufRead, BufReader},
    process::{Child, ChildStdin},
    sync::mpsc::{self, Receiver, RecvTimeoutError},
    thread,
    time::{Duration, Instant},
};

use anyhow::Context;
use gpumon_probe::model::Record;

use super::{candidate::View, reader::ReadResult};
use crate::{collector, exit::Failure, options::SourceArgs};

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

impl Collector {
    pub(super) fn start(source: &SourceArgs, interval: Duration) -> Result<Self, Failure> {
        let mut command = collector::command(source, interval)?;
        let mut child = command
            .arg("--hide-commands")
            .spawn()
            .context("cannot start a gpumon collect")?;
        let (sender, records) = mpsc::channel();
        let (requests, output) = (child.stdin.take(), child.stdout.take());
        thread::spawn(move || {
            for line in output
                .into_iter()
                .flat_map(|output| BufReader::new(output).lines())
                .map_while(Result::ok)
            {
                // A line that is none of ours tells nothing; the next may.
                if let Ok(record) = Record::decode(&line)
                    && sender.send(record).is_err()
                {
                    return;
                }
            }
        });
        Ok(Self {
            child,
            requests,
            records,
            view: None,
            interval,
        })
    }

    pub(super) fn set_interval(&mut self, interval: Duration) {
        if interval != self.interval
            && let Some(requests) = &mut self.requests
        {
            self.interval = interval;
            // One that has ended is noticed when it is listened to.
            let _ = collector::set_interval(requests, interval);
        }
    }

    /// Waits for the next sample, and takes the newest that has come.
    ///
    /// # Errors
    /// The collector has ended with this exit code, before it sent anything.
    pub(super) fn receive(&mut self, patience: Duration) -> Result<ReadResult, Option<u8>> {
        let deadline = Instant::now() + patience;
        let mut has_sample = false;
        loop {
            let left = if has_sample {
                Duration::ZERO
            } else {
                deadline.saturating_duration_since(Instant::now())
            };
            match self.records.recv_timeout(left) {
                Ok(record) => has_sample |= self.ingest(record),
                Err(RecvTimeoutError::Disconnected) if !has_sample => {
                    return Err(self.exit_code());
                }
                Err(_) => break,
            }
        }
        Ok(match &self.view {
            Some(view) if has_sample => ReadResult::Available(Box::new(view.clone())),
            _ => ReadResult::Unavailable("the driver does not answer".to_owned()),
        })
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
                *view = Some(View {
                    inventory,
                    gpus: Vec::new(),
                    details: BTreeMap::new(),
                });
            }
            (Record::Details(details), Some(view)) => {
                drop(view.details.insert(details.index, details));
            }
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
        let code = status
            .code()
            .and_then(|code| u8::try_from(code).ok())
            .filter(|code| *code > 0);
        code.filter(|_| self.view.as_ref().is_none_or(|view| view.gpus.is_empty()))
    }
}
