//! Reading of the GPUs' state through a running server or a separate collector.

use std::{
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

use crate::{
    child_processes,
    exit::{Failure, Result},
    local_server::ServerArgs,
    options::SourceArgs,
    snapshot::DriverAnswer,
};

/// The sampling interval while a locked GPU must be checked again.
const FAST_INTERVAL: Duration = Duration::from_millis(100);
/// If no sample arrives for this long, a problem is reported. Normally, a sample arrives in each
/// sampling interval.
const DRIVER_TIMEOUT: Duration = Duration::from_secs(3);
/// The maximum time to wait for a server's response. A server normally responds within a
/// millisecond. A slower server is not used, and the driver is read directly.
const SERVER_TIMEOUT: Duration = Duration::from_secs(1);
/// The minimum time between two starts of the collector.
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
    Available(Box<DriverAnswer>),
    /// The GPUs cannot be read at present. The text is the reason.
    Unavailable(String),
}

/// The required fields of `/api/v1/snapshot`. The other fields may have the format of another
/// version.
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

    /// Reads the next sample, which is taken one sampling interval after the previous one. With
    /// `hurry`, the interval is shorter. Waits no longer than `deadline`.
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
            if let Some(look) = self.request_from_server(within(SERVER_TIMEOUT)) {
                return Ok(look);
            }
        }
        let collector = match &mut self.collector {
            Some(collector) => collector,
            none => none.insert(Collector::start(&self.source, interval)?),
        };
        collector.set_interval(interval);
        match collector.receive_sample(within(interval + DRIVER_TIMEOUT)) {
            Ok(read) => Ok(read),
            // The collector has already reported the reason.
            Err(Some(code)) => Err(Failure::from_printed_error(code)),
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

    /// Returns the state reported by a server of this user or machine. Returns `None` if no server
    /// can read these GPUs.
    fn request_from_server(&self, within: Duration) -> Option<ReadResult> {
        if self.source.no_daemon || self.source.source != SourceChoice::Auto {
            return None;
        }
        let answer = self
            .server
            .connect()
            .ok()?
            .send_get_request_within(within, "/api/v1/snapshot")
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
                // If the last sample is this old, the server has a problem.
                if age_ms > 5_000 + 3 * u64::from(sample.interval_ms) {
                    return unavailable("the server has no new samples");
                }
                let details = details
                    .into_iter()
                    .map(|details| (details.index, details))
                    .collect();
                Some(ReadResult::Available(Box::new(DriverAnswer {
                    inventory,
                    sample: Some(sample),
                    details,
                })))
            }
            // While the server is paused, the driver must not be read directly, because the pause
            // is meant to release it.
            (CollectorState::Paused, ..) => unavailable("gpumon is paused; run `gpumon resume`"),
            (CollectorState::Starting | CollectorState::Running, ..) => {
                unavailable("the server's collector is starting")
            }
            (CollectorState::Restarting, ..) => unavailable("the server's collector is restarting"),
            // The caller then starts a separate collector, which reports why the driver is
            // unavailable.
            (CollectorState::Unavailable, ..) => None,
        }
    }
}

/// The maximum time for the collector to end before it is abandoned.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(super) struct Collector {
    child: Child,
    requests: Option<ChildStdin>,
    records: Receiver<Record>,
    view: Option<DriverAnswer>,
    interval: Duration,
}

impl Collector {
    pub(super) fn start(source: &SourceArgs, interval: Duration) -> Result<Self> {
        let mut command = child_processes::build_collector_command(source, interval)?;
        let mut child = command
            .arg("--hide-commands")
            .spawn()
            .context("cannot start `gpumon collect`")?;
        let (sender, records) = mpsc::channel();
        let (requests, output) = (child.stdin.take(), child.stdout.take());
        thread::spawn(move || {
            for line in child_processes::read_lines(output) {
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
            // Setting the interval fails only if the collector has ended, which the next read
            // detects.
            let _ = child_processes::set_collector_interval(requests, interval);
        }
    }

    /// Waits for the next sample. If several samples have arrived, the newest one is used.
    ///
    /// # Errors
    /// Returns the collector's exit code if it ended before it sent a sample.
    fn receive_sample(&mut self, patience: Duration) -> Result<ReadResult, Option<u8>> {
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
            _ => ReadResult::Unavailable("the driver does not respond".to_owned()),
        })
    }

    /// Stops the collector, which releases the driver.
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
        if let Some(view) = &mut self.view {
            return view.apply(record);
        }
        if let Record::Inventory(inventory) = record {
            self.view = Some(DriverAnswer::new(inventory));
        }
        false
    }

    /// Returns the exit code of a collector that failed immediately, or `None` if it has sent a
    /// sample.
    fn exit_code(&mut self) -> Option<u8> {
        let status = self.child.wait().ok()?;
        let code = status
            .code()
            .and_then(|code| u8::try_from(code).ok())
            .filter(|code| *code > 0);
        let view = self.view.as_ref();
        let has_readings = view.is_some_and(|view| view.gpus().next().is_some());
        code.filter(|_| !has_readings)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_snapshot(text: &str) -> Option<String> {
        let snapshot: Snapshot = serde_json::from_str(text).unwrap();
        snapshot.into_reading(10_000).map(|look| match look {
            ReadResult::Available(_) => "seen".to_owned(),
            ReadResult::Unavailable(why) => why,
        })
    }

    #[test]
    fn starting_or_paused_server_is_awaited() {
        let status = |state: &str| {
            let collector = format!(r#"{{"state":"{state}","since_ms":0,"message":null}}"#);
            format!(
                r#"{{"version":"9","new":1,"collector":{collector},"inventory":null,"sample":null,"details":[]}}"#
            )
        };
        assert!(read_snapshot(&status("paused")).is_some_and(|why| why.contains("gpumon resume")));
        for state in ["starting", "running", "restarting"] {
            assert!(
                read_snapshot(&status(state)).is_some_and(|why| why.contains("starting")),
                "{state}"
            );
        }
        assert_eq!(read_snapshot(&status("unavailable")), None);
    }
}
