//! Processing of records, from the collector or from a joined server, and of this process's own
//! events.

use std::{path::PathBuf, sync::Arc};

use gpumon_history::span::HistorySpan;
use gpumon_probe::{
    model::{Event, EventKind, FiringAlert, Record, join_meaning_and_advice, now_ms},
    usage::{UsageMeter, cost::KernelMeter},
};

use super::{EventLog, Hub, Notice, XidCounts, encode, shared_frames::NoticeSubject};
use crate::{
    frame::{CollectorState, CollectorStatus, Hello, ServerFrame},
    history::HistoryStore,
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
        self.process_record(line, record, true);
        Ok(())
    }

    /// Replaces all data by the records in `lines`, because a recording continues at another time.
    /// All clients receive a new hello frame. Lines that are not records are ignored.
    pub(crate) fn replace_data(&self, lines: &[String]) {
        *lock::write(&self.history) = HistoryStore::default();
        *lock::write(&self.usage) = UsageMeter::default();
        *lock::write(&self.kernels) = KernelMeter::default();
        self.write_state(|state| {
            state.sample = None;
            state.details.clear();
            state.events = EventLog::default();
            state.xids = XidCounts::default();
            state.limit_times = Arc::default();
        });
        self.set_collector_state(CollectorState::Running, None);
        for line in lines {
            if let Ok(record) = Record::decode(line) {
                self.process_record(line, record, false);
            }
        }
        self.notify_hello();
        // Some tasks wait for samples. The newest sample is therefore also sent as a sample frame.
        if let Some(record) = lines.last().and_then(|line| Record::decode(line).ok()) {
            self.process_record(&lines[lines.len() - 1], record, true);
        }
    }

    /// Processes a record of the collector or of a joined server. `line` is the record's JSON.
    /// Clients are notified if `is_reported` is set.
    pub(crate) fn process_record(&self, line: &str, record: Record, is_reported: bool) {
        lock::write(&self.kernels).push(&record);
        match record {
            Record::Inventory(inventory) => {
                let line = TextFrame::new(line);
                lock::write(&self.history).buckets.set_inventory(&inventory);
                self.write_state(|state| state.set_inventory(inventory, line.clone()));
                self.record_state_change();
                self.notify_if(is_reported, line.into());
            }
            Record::Details(details) => {
                let details = Arc::new(details);
                self.write_state(|state| state.details.insert(details.index, Arc::clone(&details)));
                self.notify_if(
                    is_reported,
                    Notice::new(TextFrame::new(line), NoticeSubject::Details(details)),
                );
            }
            Record::Answers(answers) => {
                self.write_state(|state| state.answers = answers);
                self.known_answers
                    .send_replace(self.samples.borrow().number);
            }
            Record::Trace(_) => {
                // Sending fails if no client has requested traces. This is not an error.
                let _ = self.traces.send(TextFrame::new(line));
            }
            Record::Event(event) => {
                let is_new = self.write_state(|state| {
                    state.xids.count_event(&event);
                    state.events.add_from_collector(&event)
                });
                if matches!(event.what, EventKind::Xid(_)) {
                    self.record_state_change();
                }
                if is_new {
                    if is_reported {
                        self.log_gpu_failure_or_recovery(&event);
                    }
                    self.store_event(&event);
                    let about = NoticeSubject::Event(Arc::new(event));
                    self.notify_if(is_reported, Notice::new(TextFrame::new(line), about));
                }
            }
            Record::Sample(sample) => {
                let sample = Arc::new(sample);
                self.write_state(|state| {
                    state.sample = Some(Arc::clone(&sample));
                    Arc::make_mut(&mut state.limit_times).count_sample(&sample);
                    state.events.reset_process_event_count();
                });
                if is_reported {
                    self.samples.send_modify(|frame| {
                        *frame = frame.make_next_frame(line, Arc::clone(&sample));
                    });
                    self.wake_clients();
                }
                lock::write(&self.usage).push(&sample);
                // The history is updated last, because long reads can hold its lock.
                lock::write(&self.history).push(&sample, || self.take_new_usage());
            }
        }
    }

    /// Sets the collector's state, and notifies all clients if it has changed.
    pub(crate) fn set_collector_state(&self, collector: CollectorState, message: Option<String>) {
        self.set_collector_status(collector, message, None);
    }

    /// Sets the collector's state and, for a pause, the time at which it ends if that is known.
    /// Notifies all clients if anything has changed.
    pub(crate) fn set_collector_status(
        &self,
        collector: CollectorState,
        message: Option<String>,
        resumes_ms: Option<u64>,
    ) {
        let is_known = |known: &CollectorStatus| {
            known.state == collector && known.message == message && known.resumes_ms == resumes_ms
        };
        if self.read_state(|state| is_known(&state.collector)) {
            return;
        }
        let status = self.write_state(|state| {
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
        self.record_state_change();
        self.notify(encode(&ServerFrame::Collector(status)).into());
    }

    /// Adds an event of this process. The collector's events arrive as records instead.
    pub(crate) fn add_event(&self, event: Event) {
        self.write_state(|state| state.events.add(event.clone()));
        self.store_event(&event);
        let text = encode(&ServerFrame::Event(event.clone()));
        self.notify(Notice::new(text, NoticeSubject::Event(Arc::new(event))));
    }

    /// Logs that a GPU stopped responding, or that it responds again.
    fn log_gpu_failure_or_recovery(&self, event: &Event) {
        let is_own =
            self.read_state(|state| state.joined.is_none() && state.recording_time_ms().is_none());
        let Some(gpu) = event.gpu.as_ref().map(|gpu| gpu.index).filter(|_| is_own) else {
            return;
        };
        match &event.what {
            EventKind::GpuLost => {
                tracing::warn!("GPU {gpu} is lost: it has fallen off the bus or was removed");
            }
            EventKind::GpuHung => {
                tracing::warn!("GPU {gpu} does not respond: a call to the driver does not return");
            }
            EventKind::GpuFailed { meaning, advice } => {
                tracing::warn!(
                    "GPU {gpu} cannot be read: {}",
                    join_meaning_and_advice(meaning, advice)
                );
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
    pub(crate) fn set_firing_alerts(&self, firing: Vec<FiringAlert>) {
        let firing = self.write_state(|state| {
            state.alerts = firing;
            state.firing_alerts()
        });
        self.notify(Notice::from_alerts(firing));
    }

    fn notify_if(&self, is_reported: bool, notice: Notice) {
        if is_reported {
            self.notify(notice);
        }
    }
}

// The data of a joined server, which replaces the data of this server's own collector.

/// A guard. The readings come from another server until the guard is dropped.
pub(crate) struct JoinGuard(Arc<Hub>);

impl Hub {
    /// Switches to the readings of the server at `socket`, until the returned guard is dropped.
    pub(crate) fn join_server(self: &Arc<Self>, socket: PathBuf) -> JoinGuard {
        self.set_joined_socket(Some(socket));
        JoinGuard(Arc::clone(self))
    }

    fn set_joined_socket(&self, socket: Option<PathBuf>) {
        self.write_state(|state| {
            state.collector.joined = socket.as_ref().map(|socket| socket.display().to_string());
            state.joined = socket;
        });
        let status = self.collector_status();
        self.notify(encode(&ServerFrame::Collector(status)).into());
    }

    /// Returns the socket of the joined server, or `None` if the readings come from the collector.
    pub(crate) fn joined_socket(&self) -> Option<PathBuf> {
        self.read_state(|state| state.joined.clone())
    }

    /// Replaces all data by the joined server's data, including its history of the last few
    /// minutes. All clients receive a new hello frame.
    pub(crate) fn adopt_server_data(&self, hello: Hello, past: Option<HistorySpan>) {
        let Hello {
            inventory,
            details,
            sample,
            events,
            alerts,
            collector,
            ..
        } = hello;
        if let Some(past) = past {
            lock::write(&self.history).recent.restore(&past);
        }
        self.write_state(|state| {
            state.events.merge(events);
            state.joined_alerts = alerts;
        });
        let CollectorStatus {
            state,
            message,
            resumes_ms,
            ..
        } = collector;
        self.set_collector_status(state, message, resumes_ms);
        let sample = sample.map(Record::Sample);
        let known = inventory
            .map(Record::Inventory)
            .into_iter()
            .chain(details.into_iter().map(Record::Details));
        for record in known.chain(sample.clone()) {
            self.process_record(&encode_line(&record), record, false);
        }
        self.notify_hello();
        // Some tasks wait for samples. The newest sample is therefore also sent as a sample frame.
        if let Some(record) = sample {
            self.process_record(&encode_line(&record), record, true);
        }
    }

    /// Sets the firing alerts of the joined server.
    pub(crate) fn set_joined_firing_alerts(&self, firing: Vec<FiringAlert>) {
        let firing = self.write_state(|state| {
            state.joined_alerts = firing;
            state.firing_alerts()
        });
        self.notify(Notice::from_alerts(firing));
    }

    /// Returns `true` if a client has requested traces.
    pub(crate) fn has_trace_requests(&self) -> bool {
        self.traces.receiver_count() > 0
    }
}

impl Drop for JoinGuard {
    fn drop(&mut self) {
        self.0.set_joined_firing_alerts(Vec::new());
        self.0.set_joined_socket(None);
    }
}

fn encode_line(record: &Record) -> String {
    serde_json::to_string(record).expect("records can always be serialized")
}

#[cfg(test)]
mod tests {
    use gpumon_probe::{
        host::HostReader,
        model::{Absence, GpuSample, Health, ProcessRef, Reading, Sample},
    };

    use super::{
        super::{MAX_NOTICES, SnapshotParts, event_log::MAX_PROCESS_EVENTS},
        *,
    };

    /// Returns a collector line that reports the start of a process.
    fn make_process_start(at_ms: u64) -> String {
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

    /// Returns samples of an idle GPU, one per second.
    fn make_samples(seconds: u64) -> Vec<String> {
        let host = HostReader::new().read();
        let line = |second| {
            let at_ms = 1_000_000 + second * 1000;
            let mut gpu = GpuSample::new_absent(0, None, at_ms, Health::Ok, &Absence::NotSupported);
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
    fn usage_is_counted_once_after_recording_is_rewound() {
        let (played, other) = (Hub::new(), Hub::new());
        for line in make_samples(60) {
            played.ingest(&line).unwrap();
        }
        for line in make_samples(30) {
            other.ingest(&line).unwrap();
        }
        played.replace_data(&make_samples(30));
        let usage = played.usage();
        assert_eq!(usage, other.usage());
        assert!(
            (20.0..30.0).contains(&usage.unheld.gpu_seconds),
            "{usage:?}"
        );
    }

    #[test]
    fn process_events_do_not_displace_queued_notices() {
        let hub = Hub::new();
        let mut notices = hub.subscribe_notices();
        for at_ms in 0..2 * MAX_NOTICES as u64 {
            hub.ingest(&make_process_start(at_ms)).unwrap();
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
        // The first notice is the collector's state, and the last one the MIG change.
        assert_eq!(received.len(), 1 + MAX_PROCESS_EVENTS + 1);
        assert_eq!(
            hub.take_snapshot(&SnapshotParts::default()).events.len(),
            MAX_PROCESS_EVENTS + 1
        );
    }
}
