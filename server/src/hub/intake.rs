//! Processing of the collector's records and of this process's events, and notification of clients.

use std::sync::Arc;

use gpumon_probe::{
    model::{Event, EventKind, FiringAlert, Record, now_ms, with_advice},
    usage::{UsageMeter, cost::KernelMeter},
};

use super::{EventLog, Hub, Notice, XidCounts, encode, notice::About};
use crate::{
    frame::{CollectorState, CollectorStatus, ServerFrame},
    history::Past,
    lock,
    stream::TextFrame,
};

impl Hub {
    /// Processes a line of the collector.
    ///
    /// # Errors
    /// Returns an error if the line is not a record.
    pub(crate) fn ingest(&self, line: &str) -> Result<(), serde_json::Error> {
        let record = Record::decode(line)?;
        self.set_collector_state(CollectorState::Running, None);
        self.take_in(line, record, true);
        Ok(())
    }

    /// Replaces all data by these lines, because a recording is played from another time. All
    /// clients receive a hello. Lines that are not records are ignored.
    pub(crate) fn rewind(&self, lines: &[String]) {
        *lock::write(&self.history) = Past::default();
        *lock::write(&self.usage) = UsageMeter::default();
        *lock::write(&self.kernels) = KernelMeter::default();
        self.write(|state| {
            state.sample = None;
            state.details.clear();
            state.events = EventLog::default();
            state.xids = XidCounts::default();
        });
        self.set_collector_state(CollectorState::Running, None);
        for line in lines {
            if let Ok(record) = Record::decode(line) {
                self.take_in(line, record, false);
            }
        }
        self.notify_hello();
        // The newest sample is also sent as a frame, for all who wait for samples.
        if let Some(record) = lines.last().and_then(|line| Record::decode(line).ok()) {
            self.take_in(&lines[lines.len() - 1], record, true);
        }
    }

    /// Processes a record. `is_told` is whether clients are notified.
    pub(super) fn take_in(&self, line: &str, record: Record, is_told: bool) {
        lock::write(&self.kernels).push(&record);
        match record {
            Record::Inventory(inventory) => {
                let line = TextFrame::new(line);
                lock::write(&self.history).buckets.set_inventory(&inventory);
                self.write(|state| state.set_inventory(inventory, line.clone()));
                self.count_state_change();
                self.notify_if(is_told, line.into());
            }
            Record::Details(details) => {
                let details = Arc::new(details);
                self.write(|state| state.details.insert(details.index, Arc::clone(&details)));
                self.notify_if(
                    is_told,
                    Notice::new(TextFrame::new(line), About::Details(details)),
                );
            }
            Record::Answers(answers) => {
                self.write(|state| state.answers = answers);
                self.known_answers
                    .send_replace(self.samples.borrow().number);
            }
            Record::Trace(_) => {
                // Sending fails if no client has requested traces.
                let _ = self.traces.send(TextFrame::new(line));
            }
            Record::Event(event) => {
                let is_new = self.write(|state| {
                    state.xids.count(&event);
                    state.events.add_from_collector(&event)
                });
                if matches!(event.what, EventKind::Xid(_)) {
                    self.count_state_change();
                }
                if is_new {
                    if is_told {
                        self.log(&event);
                    }
                    self.store_event(&event);
                    let about = About::Event(Arc::new(event));
                    self.notify_if(is_told, Notice::new(TextFrame::new(line), about));
                }
            }
            Record::Sample(sample) => {
                let sample = Arc::new(sample);
                self.write(|state| {
                    state.sample = Some(Arc::clone(&sample));
                    state.events.on_sample();
                });
                if is_told {
                    self.samples
                        .send_modify(|frame| *frame = frame.next(line, Arc::clone(&sample)));
                    self.wake_clients();
                }
                lock::write(&self.usage).push(&sample);
                // The history comes last, because long reads of it can delay this.
                lock::write(&self.history).push(&sample, || self.used());
            }
        }
    }

    /// Sets the state of the collector. All clients are notified of a change.
    pub(crate) fn set_collector_state(&self, collector: CollectorState, message: Option<String>) {
        self.collector_status(collector, message, None);
    }

    /// Sets that the collector is paused, with the end of the pause if it is known.
    pub(crate) fn set_collector_paused(&self, message: String, resumes_ms: Option<u64>) {
        self.collector_status(CollectorState::Paused, Some(message), resumes_ms);
    }

    pub(crate) fn collector_status(
        &self,
        collector: CollectorState,
        message: Option<String>,
        resumes_ms: Option<u64>,
    ) {
        let is_known = |known: &CollectorStatus| {
            known.state == collector && known.message == message && known.resumes_ms == resumes_ms
        };
        if self.read(|state| is_known(&state.collector)) {
            return;
        }
        let status = self.write(|state| {
            let since_ms = if state.collector.state == collector {
                state.collector.since_ms
            } else {
                now_ms()
            };
            let joined = state
                .joined
                .as_ref()
                .map(|socket| socket.display().to_string());
            state.collector = CollectorStatus {
                state: collector,
                since_ms,
                message,
                resumes_ms,
                joined,
            };
            state.collector.clone()
        });
        self.count_state_change();
        self.notify(encode(&ServerFrame::Collector(status)).into());
    }

    /// Adds an event of this process. Events of the collector are records.
    pub(crate) fn add_event(&self, event: Event) {
        self.write(|state| state.events.add(event.clone()));
        self.store_event(&event);
        let text = encode(&ServerFrame::Event(event.clone()));
        self.notify(Notice::new(text, About::Event(Arc::new(event))));
    }

    /// Logs that a GPU does not respond, or that it responds again.
    fn log(&self, event: &Event) {
        let is_own = self.read(|state| state.joined.is_none() && state.played_at_ms().is_none());
        let Some(gpu) = event.gpu.as_ref().map(|gpu| gpu.index).filter(|_| is_own) else {
            return;
        };
        match &event.what {
            EventKind::GpuLost => {
                tracing::warn!("GPU {gpu} is lost: it has fallen off the bus or was taken out");
            }
            EventKind::GpuHung => {
                tracing::warn!("GPU {gpu} does not respond: a call to the driver does not return");
            }
            EventKind::GpuFailed { meaning, advice } => {
                tracing::warn!("GPU {gpu} cannot be read: {}", with_advice(meaning, advice));
            }
            EventKind::GpuBack => tracing::info!("GPU {gpu} responds again"),
            EventKind::GpuAdded => tracing::info!("GPU {gpu} was added"),
            _ => {}
        }
    }

    fn store_event(&self, event: &Event) {
        lock::read(&self.history).add_event(event);
    }

    /// Sets the firing alerts.
    pub(crate) fn set_firing(&self, firing: Vec<FiringAlert>) {
        let firing = self.write(|state| {
            state.alerts = firing;
            state.firing()
        });
        self.notify(Notice::of_alerts(firing));
    }

    fn notify_if(&self, is_told: bool, notice: Notice) {
        if is_told {
            self.notify(notice);
        }
    }
}

#[cfg(test)]
mod tests {
    use gpumon_probe::{
        host::HostReader,
        model::{Absence, GpuSample, Health, ProcessRef, Reading, Sample},
    };

    use super::{
        super::{NOTICES, event_log::PROCESS_EVENTS},
        *,
    };
    use crate::snapshot_parts::SnapshotParts;

    /// Returns a line of the collector about the start of a process.
    fn process_started(at_ms: u64) -> String {
        let unknown = || Reading::Absent(Absence::Unknown);
        let started = ProcessRef {
            pid: 1,
            name: unknown(),
            program: None,
            user: unknown(),
            started_ms: Reading::Absent(Absence::Unknown),
        };
        let event = Event {
            at_ms,
            gpu: None,
            what: EventKind::ProcessStarted(started),
        };
        serde_json::to_string(&Record::Event(event)).unwrap()
    }

    /// Returns samples of an unused GPU, one per second.
    fn sampled(seconds: u64) -> Vec<String> {
        let host = HostReader::new().read();
        let line = |second| {
            let at_ms = 1_000_000 + second * 1000;
            let mut gpu = GpuSample::absent(0, None, at_ms, Health::Ok, &Absence::NotSupported);
            gpu.processes = Reading::Now(Vec::new());
            let sample = Sample {
                seq: second,
                at_ms,
                interval_ms: 1000,
                gpus: vec![gpu],
                host: host.clone(),
            };
            serde_json::to_string(&Record::Sample(sample)).unwrap()
        };
        (0..seconds).map(line).collect()
    }

    #[test]
    fn a_recording_that_is_played_from_another_moment_was_used_once() {
        let (played, other) = (Hub::new(), Hub::new());
        for line in sampled(60) {
            played.ingest(&line).unwrap();
        }
        for line in sampled(30) {
            other.ingest(&line).unwrap();
        }
        played.rewind(&sampled(30));
        let usage = played.usage();
        assert_eq!(usage, other.usage());
        assert!(
            (20.0..30.0).contains(&usage.unheld.gpu_seconds),
            "{usage:?}"
        );
    }

    #[test]
    fn processes_of_all_gpus_together_do_not_push_out_what_queues_for_clients() {
        let hub = Hub::new();
        let mut notices = hub.notices();
        for at_ms in 0..2 * NOTICES as u64 {
            hub.ingest(&process_started(at_ms)).unwrap();
        }
        let of_gpu = Event {
            at_ms: 0,
            gpu: None,
            what: EventKind::MigChanged,
        };
        hub.ingest(&serde_json::to_string(&Record::Event(of_gpu)).unwrap())
            .unwrap();
        let mut received = Vec::new();
        while let Ok(frame) = notices.try_recv() {
            received.push(frame);
        }
        // The first notice is the state of the collector.
        assert_eq!(received.len(), 1 + PROCESS_EVENTS + 1);
        assert_eq!(
            hub.snapshot(&SnapshotParts::default()).events.len(),
            PROCESS_EVENTS + 1
        );
    }
}
