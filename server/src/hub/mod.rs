//! What the collector said last, and the way from there to every client.
//!
//! A sample is encoded once, by the collector; its line is shared by all clients. Samples go through a `watch`, where
//! the newest wins for a client that is slow; everything else goes through a `broadcast`, where each one counts.

mod event_log;
mod joined;
mod known;
mod notice;
mod sample_frame;
mod xid_counts;

use std::{
    cmp::Reverse,
    collections::BTreeMap,
    io,
    ops::Range,
    path::PathBuf,
    sync::{
        Arc, PoisonError, RwLock,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use gpumon_history::{
    bucket::BUCKET_MS,
    jobs::JobList,
    merge::merged,
    plan::SpanRequest,
    span::HistorySpan,
    wanted::Wanted,
    writer::{Restored, Settings},
};
use gpumon_probe::{
    model::{Event, EventKind, FiringAlert, GpuDetails, GpuRef, Inventory, Record, Sample, now_ms},
    usage::{Period, Usage, UsageMeter},
    vendor::{DriverAnswers, GpuAnswers},
};
use tokio::{
    sync::{broadcast, watch},
    time::timeout,
};

use crate::{
    driver_answers::Answers,
    frame::{CollectorState, CollectorStatus, Hello, History, ServerFrame, Snapshot, is_fresh, late_ms},
    history::{self, LATE_MS, Past},
    join::ask,
    snapshot_parts::SnapshotParts,
    stream::TextFrame,
    view::View,
};

use self::{event_log::EventLog, notice::About};
pub(crate) use self::{known::Known, notice::Notice, sample_frame::SampleFrame, xid_counts::XidCounts};

/// This many events and states may queue up for a slow client before it is told that it missed some.
const NOTICES: usize = 256;

/// How far back a hello reaches. A client asks for the rest where it shows it.
const HELLO_MS: u64 = 5 * 60 * 1000;

/// So many traces may queue up for a slow client that asked for them.
const TRACES: usize = 256;

/// How long the collector may take to send the driver's answers, which it does without a call of the driver.
const ANSWERS_TIMEOUT: Duration = Duration::from_millis(250);

/// gpumon's version, as clients see it.
pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The meeting point of the collector and the clients.
pub(crate) struct Hub {
    state: RwLock<State>,
    /// Apart from the rest, since reading much of it takes milliseconds.
    history: RwLock<Past>,
    /// Who used how much since the server's start.
    usage: RwLock<UsageMeter>,
    /// Counts what has been taken in, so that whoever has read something knows whether there is something newer.
    change_count: AtomicU64,
    /// Counts changes of the collector's state, of what is there, and Xids: what metrics must not tell late.
    state_change_count: AtomicU64,
    samples: watch::Sender<SampleFrame>,
    /// Counts samples and notices, so that a client waits for one thing alone.
    wakeups: watch::Sender<u64>,
    notices: broadcast::Sender<Notice>,
    traces: broadcast::Sender<TextFrame>,
    /// As of which sample the driver's answers are wanted.
    wanted_answers: watch::Sender<u64>,
    /// As of which sample they are known.
    known_answers: watch::Sender<u64>,
}

struct State {
    collector: CollectorStatus,
    inventory: Option<Arc<Inventory>>,
    /// The same as it came.
    inventory_line: Option<TextFrame>,
    sample: Option<Arc<Sample>>,
    details: BTreeMap<u32, Arc<GpuDetails>>,
    answers: DriverAnswers,
    events: EventLog,
    /// Which alerts of this server fire now.
    alerts: Vec<FiringAlert>,
    /// Which of the server that was joined.
    alerts_there: Vec<FiringAlert>,
    /// The socket of the server whose readings these are.
    joined: Option<PathBuf>,
    /// Since the start.
    xids: XidCounts,
}

/// What alert rules are evaluated on.
pub(crate) struct KnownReadings {
    /// The newest sample, unless it is too old to tell how things are.
    pub(crate) sample: Option<Arc<Sample>>,
    pub(crate) inventory: Option<Arc<Inventory>>,
    /// Whether GPUs are read: not during a pause, nor before the first sample behind a start.
    pub(crate) is_watched: bool,
    /// When the collector got its state.
    pub(crate) started_ms: u64,
}

impl State {
    /// The time of the newest sample, where it is one of a recording.
    fn played_at_ms(&self) -> Option<u64> {
        self.inventory.as_ref()?.playback?;
        Some(self.sample.as_ref().map_or(0, |sample| sample.at_ms))
    }

    /// Which alerts fire now, the worst first.
    fn firing(&self) -> Vec<FiringAlert> {
        let mut firing = [&self.alerts[..], &self.alerts_there].concat();
        firing.sort_by_key(|firing| Reverse(firing.alert.severity));
        firing
    }

    /// Takes in what is there. Details of a GPU that is there no more, or is another one, tell nothing any more; those
    /// of the others stay until new ones come.
    fn set_inventory(&mut self, inventory: Inventory, line: TextFrame) {
        self.details.retain(|index, details| {
            let gpu = inventory.gpus.iter().find(|gpu| gpu.index == *index);
            gpu.is_some_and(|gpu| gpu.uuid.is_none() || gpu.uuid == details.uuid)
        });
        self.inventory = Some(Arc::new(inventory));
        self.inventory_line = Some(line);
    }
}

impl Hub {
    pub(crate) fn new() -> Self {
        Self {
            state: RwLock::new(State {
                collector: CollectorStatus {
                    state: CollectorState::Starting,
                    since_ms: now_ms(),
                    message: None,
                    resumes_ms: None,
                    joined: None,
                },
                inventory: None,
                inventory_line: None,
                sample: None,
                details: BTreeMap::new(),
                answers: DriverAnswers::default(),
                events: EventLog::default(),
                alerts: Vec::new(),
                alerts_there: Vec::new(),
                joined: None,
                xids: XidCounts::default(),
            }),
            history: RwLock::default(),
            usage: RwLock::default(),
            change_count: AtomicU64::new(0),
            state_change_count: AtomicU64::new(0),
            samples: watch::Sender::new(SampleFrame::none()),
            wakeups: watch::Sender::new(0),
            notices: broadcast::Sender::new(NOTICES),
            traces: broadcast::Sender::new(TRACES),
            wanted_answers: watch::Sender::new(0),
            known_answers: watch::Sender::new(0),
        }
    }

    /// Takes in one line of the collector.
    ///
    /// # Errors
    /// Where the line is not a record.
    pub(crate) fn ingest(&self, line: &str) -> Result<(), serde_json::Error> {
        let record = Record::decode(line)?;
        self.set_collector_state(CollectorState::Running, None);
        self.take_in(line, record, true);
        Ok(())
    }

    /// Forgets all, and takes in these lines in its place: a recording is played from another moment. Every client gets a
    /// hello. A line that is not a record is left out.
    pub(crate) fn rewind(&self, lines: &[String]) {
        *self.history.write().unwrap_or_else(PoisonError::into_inner) = Past::default();
        *self.usage.write().unwrap_or_else(PoisonError::into_inner) = UsageMeter::default();
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
        // Those who may see more than all others may.
        if let Some(record) = lines.last().and_then(|line| Record::decode(line).ok()) {
            self.take_in(&lines[lines.len() - 1], record, true);
        }
    }

    /// Takes in one record, which this line is, and tells clients of it or not.
    fn take_in(&self, line: &str, record: Record, is_told: bool) {
        match record {
            Record::Inventory(inventory) => {
                let line = TextFrame::new(line);
                self.history.write().unwrap_or_else(PoisonError::into_inner).set_inventory(&inventory);
                self.write(|state| state.set_inventory(inventory, line.clone()));
                self.count_state_change();
                self.notify_if(is_told, line.into());
            }
            Record::Details(details) => {
                let details = Arc::new(details);
                self.write(|state| state.details.insert(details.index, Arc::clone(&details)));
                self.notify_if(is_told, Notice { text: TextFrame::new(line), about: About::Details(details) });
            }
            Record::Answers(answers) => {
                self.write(|state| state.answers = answers);
                self.known_answers.send_replace(self.samples.borrow().number);
            }
            Record::Trace(_) => {
                // An error means that nobody asked for traces.
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
                    self.store_event(&event);
                    let about = About::Event(Arc::new(event));
                    self.notify_if(is_told, Notice { text: TextFrame::new(line), about });
                }
            }
            Record::Sample(sample) => {
                let sample = Arc::new(sample);
                self.write(|state| {
                    state.sample = Some(Arc::clone(&sample));
                    state.events.on_sample();
                });
                if is_told {
                    self.samples.send_modify(|frame| *frame = frame.next(line, Arc::clone(&sample)));
                    self.wake_clients();
                }
                self.usage.write().unwrap_or_else(PoisonError::into_inner).push(&sample);
                // Last, since whoever reads a lot of it holds this up.
                self.history.write().unwrap_or_else(PoisonError::into_inner).push(&sample, || self.used());
            }
        }
    }

    /// Takes in the collector's state; a change is told to every client.
    pub(crate) fn set_collector_state(&self, collector: CollectorState, message: Option<String>) {
        self.collector_status(collector, message, None);
    }

    /// Takes in that there is no collector, and until when if that is known.
    pub(crate) fn set_collector_paused(&self, message: String, resumes_ms: Option<u64>) {
        self.collector_status(CollectorState::Paused, Some(message), resumes_ms);
    }

    pub(super) fn collector_status(&self, collector: CollectorState, message: Option<String>, resumes_ms: Option<u64>) {
        let is_known = |known: &CollectorStatus| {
            known.state == collector && known.message == message && known.resumes_ms == resumes_ms
        };
        if self.read(|state| is_known(&state.collector)) {
            return;
        }
        let status = self.write(|state| {
            let since_ms = if state.collector.state == collector { state.collector.since_ms } else { now_ms() };
            let joined = state.joined.as_ref().map(|socket| socket.display().to_string());
            state.collector = CollectorStatus { state: collector, since_ms, message, resumes_ms, joined };
            state.collector.clone()
        });
        self.count_state_change();
        self.notify(encode(&ServerFrame::Collector(status)).into());
    }

    /// Takes in what happened in this process, and not in the collector.
    pub(crate) fn add_event(&self, event: Event) {
        self.write(|state| state.events.add(event.clone()));
        self.store_event(&event);
        let text = encode(&ServerFrame::Event(event.clone()));
        self.notify(Notice { text, about: About::Event(Arc::new(event)) });
    }

    fn store_event(&self, event: &Event) {
        self.history.read().unwrap_or_else(PoisonError::into_inner).add_event(event);
    }

    /// Takes in which alerts fire now.
    pub(crate) fn set_firing(&self, firing: Vec<FiringAlert>) {
        let firing = self.write(|state| {
            state.alerts = firing;
            state.firing()
        });
        self.notify(encode(&ServerFrame::Alerts { firing }).into());
    }

    /// What is known at this moment, as alert rules see it. A collector that is replaced at once leaves no gap.
    pub(crate) fn readings(&self, now_ms: u64) -> KnownReadings {
        self.read(|state| {
            let interval_ms = state.sample.as_ref().map_or(0, |sample| u64::from(sample.interval_ms));
            let is_recent = |at_ms: u64| now_ms.saturating_sub(at_ms) < late_ms(interval_ms);
            let sample = state.sample.clone().filter(|sample| is_recent(sample.at_ms));
            let is_watched = match state.collector.state {
                CollectorState::Paused | CollectorState::Starting => false,
                CollectorState::Running => sample.is_some() || !is_recent(state.collector.since_ms),
                CollectorState::Restarting | CollectorState::Unavailable => true,
            };
            let started_ms = state.collector.since_ms;
            KnownReadings { sample, inventory: state.inventory.clone(), is_watched, started_ms }
        })
    }

    /// What is known at this moment, without a copy of it.
    pub(crate) fn known(&self) -> Known {
        let usage = self.usage();
        self.read(|state| Known {
            collector: state.collector.clone(),
            inventory: state.inventory.clone(),
            sample: state.sample.clone(),
            details: state.details.values().cloned().collect(),
            xids: state.xids.clone(),
            usage,
        })
    }

    /// The GPUs that there are.
    pub(crate) fn gpus(&self) -> Vec<GpuRef> {
        self.read(|state| {
            let gpus = state.inventory.iter().flat_map(|inventory| &inventory.gpus);
            gpus.map(|gpu| GpuRef { index: gpu.index, uuid: gpu.uuid.clone() }).collect()
        })
    }

    /// What the collector is doing.
    pub(crate) fn collector(&self) -> CollectorStatus {
        self.read(|state| state.collector.clone())
    }

    /// All a new client needs.
    pub(crate) fn hello(&self, view: &View) -> String {
        let (collector, inventory, sample, details, events, alerts) = self.read(|state| {
            let details: Vec<_> = state.details.values().cloned().collect();
            let events: Vec<_> = state.events.iter().filter_map(|event| view.event(event)).collect();
            let (inventory, sample) = (state.inventory.clone(), state.sample.clone());
            (state.collector.clone(), inventory, sample, details, events, state.firing())
        });
        write_json(&ServerFrame::Hello(Hello {
            version: VERSION.to_owned(),
            at_ms: self.now_ms(),
            collector,
            inventory: inventory.map(Arc::unwrap_or_clone),
            sample: sample.map(|sample| view.sample(&sample).into_owned()),
            details: details.into_iter().map(Arc::unwrap_or_clone).map(|details| view.details(details)).collect(),
            events,
            alerts,
            history: self.newest(HELLO_MS, &Wanted::overview()),
        }))
    }

    /// What is wanted of the recent past alone.
    pub(crate) fn history(&self, wanted: &Wanted, view: &View) -> String {
        write_json(&ServerFrame::History(view.history(self.newest(u64::MAX, wanted))))
    }

    /// What holds now of that which is told only when it changes, for a client that may have missed a change. Details
    /// come again by themselves.
    pub(crate) fn current_state(&self) -> Vec<TextFrame> {
        let (collector, inventory, firing) =
            self.read(|state| (state.collector.clone(), state.inventory_line.clone(), state.firing()));
        let collector = encode(&ServerFrame::Collector(collector));
        inventory.into_iter().chain([encode(&ServerFrame::Alerts { firing }), collector]).collect()
    }

    /// Everything known now, as far as it is asked for.
    pub(crate) fn snapshot(&self, parts: &SnapshotParts) -> Snapshot {
        let mut snapshot = self.read(|state| Snapshot {
            version: VERSION.to_owned(),
            collector: state.collector.clone(),
            inventory: state.inventory.as_deref().cloned(),
            sample: state.sample.as_deref().map(|sample| parts.view.sample(sample).into_owned()),
            details: state
                .details
                .values()
                .filter(|_| !parts.brief)
                .map(|details| parts.view.details((**details).clone()))
                .collect(),
            events: state.events.iter().filter(|_| !parts.brief).filter_map(|event| parts.view.event(event)).collect(),
            alerts: state.firing(),
            history: None,
        });
        snapshot.history = parts.history_ms.map(|reach_ms| parts.view.history(self.newest(reach_ms, &parts.wanted)));
        snapshot
    }

    /// A span of the past. It may wait for the disk.
    pub(crate) fn span(&self, request: &SpanRequest) -> HistorySpan {
        let (events, joined) = self.read(|state| (state.events.iter().cloned().collect(), state.joined.clone()));
        let ours = history::span(&self.history, request, events);
        match joined.map(|socket| ask::span(&socket, request)) {
            Some(Ok(theirs)) => merged(ours, theirs, &request.wanted),
            _ => ours,
        }
    }

    /// Which jobs were on which GPUs. It may wait for the disk.
    pub(crate) fn jobs(&self, called: Option<&str>) -> JobList {
        history::jobs(&self.history, called)
    }

    /// Writes history to disk from now on, and takes in what is there already.
    ///
    /// # Errors
    /// Where there can be no more threads.
    pub(crate) fn write_history(self: &Arc<Self>, settings: Settings) -> io::Result<()> {
        let hub = Arc::clone(self);
        let restore = move |Restored { grid, events }: Restored| {
            hub.write(|state| state.events.restore(events));
            hub.history.write().unwrap_or_else(PoisonError::into_inner).restore(grid);
        };
        self.history.write().unwrap_or_else(PoisonError::into_inner).write_to(settings, restore)
    }

    /// Ends each ten seconds of history with them, and not with the sample behind. It never ends.
    pub(crate) async fn end_buckets(&self) {
        loop {
            let rest_ms = BUCKET_MS - now_ms() % BUCKET_MS + LATE_MS;
            tokio::time::sleep(Duration::from_millis(rest_ms)).await;
            // A recording has a time of its own.
            let now_ms = self.now_ms();
            self.history.write().unwrap_or_else(PoisonError::into_inner).end_bucket(now_ms, || self.used());
        }
    }

    /// How large the history on disk may become from now on.
    pub(crate) fn limit_history(&self, size_bytes: u64) {
        self.history.read().unwrap_or_else(PoisonError::into_inner).limit(size_bytes);
    }

    /// Writes what is left of the history; waits for the disk, but not for long.
    pub(crate) fn end_history(&self) {
        let used = || {
            self.usage.write().unwrap_or_else(PoisonError::into_inner).end();
            self.used()
        };
        let writer = self.history.write().unwrap_or_else(PoisonError::into_inner).end(used);
        if let Some(writer) = writer {
            writer.end();
        }
    }

    /// Who used how much until now.
    pub(crate) fn usage(&self) -> Usage {
        self.usage.read().unwrap_or_else(PoisonError::into_inner).usage()
    }

    /// Who used how much in a span. It may wait for the disk.
    pub(crate) fn usage_in(&self, span: &Range<u64>) -> Usage {
        match self.joined().map(|socket| ask::usage(&socket, span)) {
            Some(Ok(theirs)) => theirs,
            _ => history::usage(&self.history, &self.usage, span),
        }
    }

    /// What has become known since this was asked last.
    fn used(&self) -> Vec<Period> {
        self.usage.write().unwrap_or_else(PoisonError::into_inner).take_fresh()
    }

    fn newest(&self, reach_ms: u64, wanted: &Wanted) -> History {
        self.history.read().unwrap_or_else(PoisonError::into_inner).newest(reach_ms, wanted)
    }

    /// Waits until the driver's answers are known as of the newest sample, unless the collector does not send them in
    /// time.
    pub(crate) async fn update_answers(&self) {
        let newest = self.samples.borrow().number;
        let mut known = self.known_answers.subscribe();
        if *known.borrow_and_update() < newest && self.collector().state == CollectorState::Running {
            self.wanted_answers.send_if_modified(|wanted| std::mem::replace(wanted, newest) != newest);
            let _ = timeout(ANSWERS_TIMEOUT, known.wait_for(|known| *known >= newest)).await;
        }
    }

    /// Changes whenever the collector is to send the driver's answers.
    pub(crate) fn answers_requests(&self) -> watch::Receiver<u64> {
        self.wanted_answers.subscribe()
    }

    /// Everything that queries in the driver's own vocabulary are answered from.
    pub(crate) fn answers(&self) -> Answers {
        self.read(|state| {
            let of =
                |index| state.answers.gpus.iter().find(|(gpu, _)| *gpu == index).map(|(_, answers)| answers.clone());
            let gpus = state.sample.iter().flat_map(|sample| &sample.gpus).map(|gpu| GpuAnswers {
                index: gpu.index,
                health: gpu.health.clone(),
                answers: of(gpu.index).unwrap_or_default(),
            });
            Answers {
                collector: state.collector.clone(),
                platform: state.inventory.as_ref().map(|inventory| inventory.platform.clone()),
                at_ms: state.sample.as_ref().map(|sample| sample.at_ms),
                interval_ms: state.sample.as_ref().map_or(0, |sample| sample.interval_ms),
                gpus: gpus.collect(),
            }
        })
    }

    /// The time that samples are of: now, and the newest sample's where a recording is played.
    pub(crate) fn now_ms(&self) -> u64 {
        let played = |state: &State| state.played_at_ms();
        self.read(played).unwrap_or_else(now_ms)
    }

    /// Whether the newest sample tells how things are.
    pub(crate) fn is_fresh(&self, now_ms: u64) -> bool {
        self.read(|state| {
            let is_fresh = |sample: &Arc<Sample>| is_fresh(sample, &state.collector, now_ms);
            state.played_at_ms().is_none() && state.sample.as_ref().is_some_and(is_fresh)
        })
    }

    /// The number of the last change of a state.
    pub(crate) fn state_change(&self) -> u64 {
        self.state_change_count.load(Ordering::Acquire)
    }

    fn count_state_change(&self) {
        self.state_change_count.fetch_add(1, Ordering::Release);
    }

    /// The number of the last change.
    pub(crate) fn change(&self) -> u64 {
        self.change_count.load(Ordering::Acquire)
    }

    /// Changes with every sample and every notice.
    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        self.wakeups.subscribe()
    }

    /// The samples to come.
    pub(crate) fn samples(&self) -> watch::Receiver<SampleFrame> {
        self.samples.subscribe()
    }

    /// The events and states to come.
    pub(crate) fn notices(&self) -> broadcast::Receiver<Notice> {
        self.notices.subscribe()
    }

    /// The traces to come.
    pub(crate) fn traces(&self) -> broadcast::Receiver<TextFrame> {
        self.traces.subscribe()
    }

    fn notify_if(&self, is_told: bool, notice: Notice) {
        if is_told {
            self.notify(notice);
        }
    }

    /// Every client begins anew, with what it may see.
    fn notify_hello(&self) {
        self.notify(Notice { text: TextFrame::new(&self.hello(&View::Names)), about: About::Everything });
    }

    fn notify(&self, notice: Notice) {
        // An error means that no client is connected.
        if self.notices.send(notice).is_ok() {
            self.wake_clients();
        }
    }

    fn wake_clients(&self) {
        self.wakeups.send_modify(|number| *number += 1);
    }

    fn read<T>(&self, read: impl FnOnce(&State) -> T) -> T {
        read(&self.state.read().unwrap_or_else(PoisonError::into_inner))
    }

    fn write<T>(&self, write: impl FnOnce(&mut State) -> T) -> T {
        let written = write(&mut self.state.write().unwrap_or_else(PoisonError::into_inner));
        self.change_count.fetch_add(1, Ordering::Release);
        written
    }
}

/// A frame, ready to be sent.
pub(crate) fn encode(frame: &ServerFrame) -> TextFrame {
    TextFrame::new(&write_json(frame))
}

fn write_json(frame: &ServerFrame) -> String {
    serde_json::to_string(frame).expect("frames have string keys and no failing parts")
}

#[cfg(test)]
mod tests {
    use gpumon_probe::{
        host::HostReader,
        model::{Absence, EventKind, GpuSample, Health, ProcessRef, Reading},
    };

    use super::{event_log::PROCESS_EVENTS, *};

    /// A line of the collector about a process that has started.
    fn process_started(at_ms: u64) -> String {
        let unknown = || Reading::Absent(Absence::Unknown);
        let started =
            ProcessRef { pid: 1, name: unknown(), user: unknown(), started_ms: Reading::Absent(Absence::Unknown) };
        let event = Event { at_ms, gpu: None, what: EventKind::ProcessStarted(started) };
        serde_json::to_string(&Record::Event(event)).unwrap()
    }

    /// A sample every second of a GPU that nobody holds.
    fn sampled(seconds: u64) -> Vec<String> {
        let host = HostReader::new().read();
        let line = |second| {
            let at_ms = 1_000_000 + second * 1000;
            let mut gpu = GpuSample::absent(0, None, at_ms, Health::Ok, &Absence::NotSupported);
            gpu.processes = Reading::Now(Vec::new());
            let sample = Sample { seq: second, at_ms, interval_ms: 1000, gpus: vec![gpu], host: host.clone() };
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
        assert!((20.0..30.0).contains(&usage.unheld.gpu_seconds), "{usage:?}");
    }

    #[test]
    fn processes_of_all_gpus_together_do_not_push_out_what_queues_for_clients() {
        let hub = Hub::new();
        let mut notices = hub.notices();
        for at_ms in 0..2 * NOTICES as u64 {
            hub.ingest(&process_started(at_ms)).unwrap();
        }
        let of_gpu = Event { at_ms: 0, gpu: None, what: EventKind::MigChanged };
        hub.ingest(&serde_json::to_string(&Record::Event(of_gpu)).unwrap()).unwrap();
        let mut received = Vec::new();
        while let Ok(frame) = notices.try_recv() {
            received.push(frame);
        }
        // The first says that the collector runs.
        assert_eq!(received.len(), 1 + PROCESS_EVENTS + 1);
        assert_eq!(hub.snapshot(&SnapshotParts::default()).events.len(), PROCESS_EVENTS + 1);
    }
}
