//! The state of the GPUs, read through a running server or through an own collector.

use std::{
    collections::BTreeMap,
    process::{Child, ChildStdin},
    sync::mpsc::{self, Receiver, RecvTimeoutError},
    thread,
    time::{Duration, Instant},
};

use anyhow::Context;
use gpumon_probe::{
    model::{GpuDetails, Inventory, Record, Sample, now_ms},
    vendor::SourceChoice,
};
use gpumon_server::frame::{CollectorState, CollectorStatus};
use serde::Deserialize;

use super::candidate::View;
use crate::{
    collector,
    exit::{Failure, Result},
    local::ServerArgs,
    options::SourceArgs,
};

/// The interval between samples while a locked GPU must be checked again.
const FAST_INTERVAL: Duration = Duration::from_millis(100);
/// How long the driver may take beyond an interval before it is reported as silent.
const PATIENCE: Duration = Duration::from_secs(3);
/// How long a server may take. One that works answers within a millisecond. If it does not, reading
/// the driver directly yields more.
const SERVER_PATIENCE: Duration = Duration::from_secs(1);
/// The minimum delay before an ended collector is restarted.
const RESTART_DELAY: Duration = Duration::from_secs(2);

#[derive(Debug)]
pub(crate) struct Reader {
    source: SourceArgs,
    server: ServerArgs,
    interval: Duration,
    collector: Option<Collector>,
    last: Option<Instant>,
}

#[derive(Debug)]
pub(super) enum ReadResult {
    Available(Box<View>),
    /// The GPUs cannot be read at present, for this reason.
    Unavailable(String),
}

/// The required part of `/api/v1/snapshot`. The other parts may be from another version.
#[derive(Debug, Deserialize)]
struct Snapshot {
    collector: CollectorStatus,
    inventory: Option<Inventory>,
    sample: Option<Sample>,
    details: Vec<GpuDetails>,
}

impl Reader {
    pub(crate) fn new(source: &SourceArgs, server: &ServerArgs, interval: Duration) -> Self {
        Self {
            source: source.clone(),
            server: server.clone(),
            interval,
            collector: None,
            last: None,
        }
    }

    pub(super) fn interval(&self) -> Duration {
        self.interval
    }

    /// Reads the next sample: one interval after the last, sooner with `hurry`, and no later than
    /// the deadline.
    pub(super) fn read(&mut self, hurry: bool, deadline: Option<Instant>) -> Result<ReadResult> {
        let interval = if hurry {
            self.interval.min(FAST_INTERVAL)
        } else {
            self.interval
        };
        let within = |time: Duration| {
            deadline.map_or(time, |deadline| {
                time.min(deadline.saturating_duration_since(Instant::now()))
            })
        };
        if self.collector.is_none() {
            if let Some(last) = self.last {
                thread::sleep(within(interval.saturating_sub(last.elapsed())));
            }
            self.last = Some(Instant::now());
            if let Some(look) = self.ask_server(within(SERVER_PATIENCE)) {
                return Ok(look);
            }
        }
        let collector = match &mut self.collector {
            Some(collector) => collector,
            none => none.insert(Collector::start(&self.source, interval)?),
        };
        collector.set_interval(interval);
        match collector.receive(within(interval + PATIENCE)) {
            Ok(read) => Ok(read),
            // The collector has already reported the reason.
            Err(Some(code)) => Err(Failure::reported(code)),
            Err(None) => {
                self.collector = None;
                thread::sleep(within(RESTART_DELAY));
                Ok(ReadResult::Unavailable(
                    "the collector ended and is restarting".to_owned(),
                ))
            }
        }
    }

    pub(super) fn close(&mut self) {
        if let Some(collector) = self.collector.take() {
            collector.stop();
        }
    }

    /// Returns the state from the server of this user or machine, or `None` if no server can read
    /// these GPUs.
    fn ask_server(&self, within: Duration) -> Option<ReadResult> {
        if self.source.no_daemon || self.source.source != SourceChoice::Auto {
            return None;
        }
        let answer = self
            .server
            .connect()
            .ok()?
            .ask_within(within, "GET", "/api/v1/snapshot")
            .ok()?;
        let snapshot: Snapshot = serde_json::from_str(&answer.body).ok()?;
        snapshot.into_reading(now_ms())
    }
}

impl Snapshot {
    fn into_reading(self, now_ms: u64) -> Option<ReadResult> {
        let Self {
            collector,
            inventory,
            sample,
            details,
        } = self;
        let is_real = |inventory: &Inventory| {
            !inventory.platform.is_simulated && inventory.playback.is_none()
        };
        if inventory
            .as_ref()
            .is_some_and(|inventory| !is_real(inventory))
        {
            return None;
        }
        let unavailable = |why: &str| Some(ReadResult::Unavailable(why.to_owned()));
        match (collector.state, inventory, sample) {
            (CollectorState::Running, Some(inventory), Some(sample)) => {
                let age_ms = now_ms.saturating_sub(sample.at_ms);
                // If a sample is this late, the server has a problem.
                if age_ms > 5_000 + 3 * u64::from(sample.interval_ms) {
                    return unavailable("the server has no new samples");
                }
                let details = details
                    .into_iter()
                    .map(|details| (details.index, details))
                    .collect();
                Some(ReadResult::Available(Box::new(View {
                    inventory,
                    gpus: sample.gpus,
                    details,
                })))
            }
            // Another reader of the driver would defeat the purpose of the pause.
            (CollectorState::Paused, ..) => unavailable("gpumon is paused; run `gpumon resume`"),
            (CollectorState::Starting | CollectorState::Running, ..) => {
                unavailable("the server's collector is starting")
            }
            (CollectorState::Restarting, ..) => unavailable("the server's collector is restarting"),
            // A collector of this process's own reports the driver's reason.
            (CollectorState::Unavailable, ..) => None,
        }
    }
}

/// How long the collector may take to end before it is abandoned.
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
    pub(super) fn start(source: &SourceArgs, interval: Duration) -> Result<Self> {
        let mut command = collector::command(source, interval)?;
        let mut child = command
            .arg("--hide-commands")
            .spawn()
            .context("cannot start a gpumon collect")?;
        let (sender, records) = mpsc::channel();
        let (requests, output) = (child.stdin.take(), child.stdout.take());
        thread::spawn(move || {
            for line in collector::read_lines(output) {
                // Lines that are not records are skipped.
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
            // If the collector has ended, the next read detects that.
            let _ = collector::set_interval(requests, interval);
        }
    }

    /// Waits for the next sample, and uses the newest one that has arrived.
    ///
    /// # Errors
    /// Returns the collector's exit code if it ended before it sent anything.
    fn receive(&mut self, patience: Duration) -> Result<ReadResult, Option<u8>> {
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

    /// Ends the collector, which releases the driver.
    pub(super) fn stop(mut self) {
        drop(self.requests.take());
        // Killing fails only if the collector has already ended.
        let _ = self.child.kill();
        let deadline = Instant::now() + SHUTDOWN_TIMEOUT;
        while matches!(self.child.try_wait(), Ok(None)) && Instant::now() < deadline {
            thread::sleep(Duration::from_millis(2));
        }
    }

    /// Applies a record. Returns `true` if it was a sample.
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

    /// Returns the exit code of a collector that failed immediately, or `None` if it had sent a
    /// sample before.
    fn exit_code(&mut self) -> Option<u8> {
        let status = self.child.wait().ok()?;
        let code = status
            .code()
            .and_then(|code| u8::try_from(code).ok())
            .filter(|code| *code > 0);
        code.filter(|_| self.view.as_ref().is_none_or(|view| view.gpus.is_empty()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn look(text: &str) -> Option<String> {
        let snapshot: Snapshot = serde_json::from_str(text).unwrap();
        snapshot.into_reading(10_000).map(|look| match look {
            ReadResult::Available(_) => "seen".to_owned(),
            ReadResult::Unavailable(why) => why,
        })
    }

    #[test]
    fn a_server_that_reads_nothing_yet_is_waited_for_and_one_that_cannot_is_not() {
        let status = |state: &str| {
            let collector = format!(r#"{{"state":"{state}","since_ms":0,"message":null}}"#);
            format!(
                r#"{{"version":"9","new":1,"collector":{collector},"inventory":null,"sample":null,"details":[]}}"#
            )
        };
        assert!(look(&status("paused")).is_some_and(|why| why.contains("gpumon resume")));
        for state in ["starting", "running", "restarting"] {
            assert!(
                look(&status(state)).is_some_and(|why| why.contains("starting")),
                "{state}"
            );
        }
        assert_eq!(look(&status("unavailable")), None);
    }
}
