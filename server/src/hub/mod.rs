//! The hub, which distributes the collector's data to all clients and keeps the current state.
//!
//! The collector encodes each sample once, and all clients share its line. Samples are sent through
//! a `watch` channel, from which a slow client gets only the newest. Everything else is sent
//! through a `broadcast` channel, because no event may be skipped.

mod current_data;
mod event_log;
mod history;
mod intake;
mod limit_times;
mod shared_frames;

use std::{
    borrow::Cow,
    cmp::Reverse,
    collections::BTreeMap,
    path::PathBuf,
    sync::{
        Arc, RwLock,
        atomic::{AtomicU64, Ordering},
    },
};

use gpumon_probe::{
    model::{EnergyPrice, Event, EventKind, FiringAlert, GpuDetails, Inventory, Sample, now_ms},
    usage::{Usage, UsageMeter, cost::KernelMeter},
    vendor::DriverAnswers,
};
use tokio::sync::{broadcast, watch};

#[cfg(test)]
pub(crate) use self::limit_times::tests::make_limited_gpu;
pub(crate) use self::{
    current_data::SnapshotParts,
    limit_times::LimitTimes,
    shared_frames::{Notice, SampleFrame},
};
use self::{event_log::EventLog, shared_frames::NoticeSubject};
use crate::{
    audit::RefusedCredentials,
    frame::{CollectorState, CollectorStatus, ServerFrame, is_fresh_sample, late_sample_age_ms},
    history::HistoryStore,
    lock,
    stream::TextFrame,
    view::View,
};

/// The maximum number of events and states that are waiting for a slow client. If there are more,
/// the oldest are dropped and the client is notified.
const MAX_NOTICES: usize = 256;

/// The maximum number of traces that wait for a slow client.
const MAX_TRACES: usize = 256;

/// The version of gpumon that hello frames and snapshots report.
pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The connection between the collector and the clients.
pub(crate) struct Hub {
    state: RwLock<HubState>,
    /// The history, which has a separate lock because long reads take milliseconds.
    history: RwLock<HistoryStore>,
    /// The usage by owner since the server's start.
    usage: RwLock<UsageMeter>,
    /// The GPU use of each notebook's kernel.
    kernels: RwLock<KernelMeter>,
    /// The number of changes so far. Readers compare it to detect newer data.
    change_count: AtomicU64,
    /// The number of changes that metrics must report without delay: changes of the collector's
    /// state, of the inventory, and of Xids.
    state_change_count: AtomicU64,
    samples: watch::Sender<SampleFrame>,
    /// The number of samples and notices so far. Clients use it to wait for both at the same time.
    wakeups: watch::Sender<u64>,
    notices: broadcast::Sender<Notice>,
    traces: broadcast::Sender<TextFrame>,
    /// The sequence number of the newest sample for which the driver's answers were requested.
    wanted_answers: watch::Sender<u64>,
    /// The sequence number of the newest sample for which the driver's answers have arrived.
    known_answers: watch::Sender<u64>,
}

impl Hub {
    pub(crate) fn new() -> Self {
        Self {
            state: RwLock::new(HubState::new()),
            history: RwLock::default(),
            usage: RwLock::default(),
            kernels: RwLock::default(),
            change_count: AtomicU64::new(0),
            state_change_count: AtomicU64::new(0),
            samples: watch::Sender::new(SampleFrame::new_empty()),
            wakeups: watch::Sender::new(0),
            notices: broadcast::Sender::new(MAX_NOTICES),
            traces: broadcast::Sender::new(MAX_TRACES),
            wanted_answers: watch::Sender::new(0),
            known_answers: watch::Sender::new(0),
        }
    }

    /// Returns the number of state changes so far.
    pub(crate) fn state_change_count(&self) -> u64 {
        self.state_change_count.load(Ordering::Acquire)
    }

    fn record_state_change(&self) {
        self.state_change_count.fetch_add(1, Ordering::Release);
    }

    /// Returns the number of changes so far.
    pub(crate) fn change_count(&self) -> u64 {
        self.change_count.load(Ordering::Acquire)
    }

    /// Returns a channel that changes whenever there is a new sample or notice.
    pub(crate) fn subscribe_changes(&self) -> watch::Receiver<u64> {
        self.wakeups.subscribe()
    }

    /// Returns the channel of samples.
    pub(crate) fn subscribe_samples(&self) -> watch::Receiver<SampleFrame> {
        self.samples.subscribe()
    }

    /// Returns the channel of events and states.
    pub(crate) fn subscribe_notices(&self) -> broadcast::Receiver<Notice> {
        self.notices.subscribe()
    }

    /// Returns the channel of traces.
    pub(crate) fn subscribe_traces(&self) -> broadcast::Receiver<TextFrame> {
        self.traces.subscribe()
    }

    /// Sends every client a new hello frame. Each client receives only the data that it may see.
    fn notify_hello(&self) {
        self.notify(Notice::new(
            TextFrame::new(&self.encode_hello(&View::Whole)),
            NoticeSubject::Everything,
        ));
    }

    fn notify(&self, notice: Notice) {
        // Sending fails if no client is connected. In that case, no client has to be notified.
        if self.notices.send(notice).is_ok() {
            self.wake_clients();
        }
    }

    fn wake_clients(&self) {
        self.wakeups.send_modify(|number| *number += 1);
    }

    fn read_state<T>(&self, read: impl FnOnce(&HubState) -> T) -> T {
        read(&lock::read(&self.state))
    }

    fn write_state<T>(&self, write: impl FnOnce(&mut HubState) -> T) -> T {
        let written = write(&mut lock::write(&self.state));
        self.change_count.fetch_add(1, Ordering::Release);
        written
    }
}

/// Encodes a frame for sending.
pub(crate) fn encode(frame: &ServerFrame) -> TextFrame {
    TextFrame::new(&to_json(frame))
}

fn to_json(frame: &ServerFrame) -> String {
    serde_json::to_string(frame).expect("frames can always be serialized")
}

/// The hub's current state, protected by one lock.
struct HubState {
    collector: CollectorStatus,
    inventory: Option<Arc<Inventory>>,
    /// The inventory as written by the collector.
    inventory_line: Option<TextFrame>,
    sample: Option<Arc<Sample>>,
    details: BTreeMap<u32, Arc<GpuDetails>>,
    answers: DriverAnswers,
    events: EventLog,
    /// The firing alerts of this server.
    alerts: Vec<FiringAlert>,
    /// The firing alerts of the joined server.
    joined_alerts: Vec<FiringAlert>,
    /// The socket of the joined server, if the readings come from it.
    joined: Option<PathBuf>,
    /// The number of Xids since the server's start.
    xids: XidCounts,
    limit_times: Arc<LimitTimes>,
    /// The counts of wrong tokens and passwords; `None` if nobody has to sign in.
    refused: Option<Arc<RefusedCredentials>>,
    /// Whether this server also shows a fleet.
    has_fleet: bool,
    energy_price: Option<EnergyPrice>,
}

impl HubState {
    /// Returns the initial state, while the collector is starting.
    fn new() -> Self {
        Self {
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
            joined_alerts: Vec::new(),
            joined: None,
            xids: XidCounts::default(),
            limit_times: Arc::default(),
            refused: None,
            has_fleet: false,
            energy_price: None,
        }
    }

    /// Returns the time of the newest sample if a recording is being played.
    fn recording_time_ms(&self) -> Option<u64> {
        self.inventory.as_ref()?.playback?;
        Some(self.sample.as_ref().map_or(0, |sample| sample.at_ms))
    }

    /// Returns the firing alerts, most severe first.
    fn firing_alerts(&self) -> Vec<FiringAlert> {
        let mut firing = [&self.alerts[..], &self.joined_alerts].concat();
        firing.sort_by_key(|firing| Reverse(firing.alert.severity));
        firing
    }

    /// Sets the inventory. Details of a GPU that is gone or was replaced are removed. All others
    /// remain until newer details arrive.
    fn set_inventory(&mut self, inventory: Inventory, line: TextFrame) {
        self.details.retain(|index, details| {
            let gpu = inventory.gpus.iter().find(|gpu| gpu.index == *index);
            gpu.is_some_and(|gpu| gpu.uuid.is_none() || gpu.uuid == details.uuid)
        });
        self.inventory = Some(Arc::new(inventory));
        self.inventory_line = Some(line);
    }
}

/// The maximum number of Xid counts for all GPUs together. NVIDIA has fewer codes, so only a faulty
/// driver exceeds this number.
const MAX_XID_COUNTS: usize = 4096;

/// The counts of the driver's Xid errors by the GPU's NVML index and the Xid code.
#[derive(Debug, Clone, Default)]
pub(crate) struct XidCounts(BTreeMap<(u32, u32), u64>);

impl XidCounts {
    pub(crate) fn count_event(&mut self, event: &Event) {
        let (Some(gpu), EventKind::Xid(report)) = (&event.gpu, &event.what) else {
            return;
        };
        let place = (gpu.index, report.code);
        if self.0.len() < MAX_XID_COUNTS || self.0.contains_key(&place) {
            *self.0.entry(place).or_default() += 1;
        }
    }

    /// Returns a GPU's Xid codes and their counts.
    pub(crate) fn gpu_counts(&self, index: u32) -> impl Iterator<Item = (u32, u64)> {
        self.0
            .range((index, 0)..=(index, u32::MAX))
            .map(|((_, code), count)| (*code, *count))
    }
}

/// The hub's data at one time, shared with the hub.
pub(crate) struct HubData {
    pub(crate) collector: CollectorStatus,
    pub(crate) inventory: Option<Arc<Inventory>>,
    pub(crate) sample: Option<Arc<Sample>>,
    pub(crate) details: Vec<Arc<GpuDetails>>,
    /// The number of Xids by GPU and code since the server's start.
    pub(crate) xids: XidCounts,
    /// The time in which each cause limited each GPU since the server's start.
    pub(crate) limit_times: Arc<LimitTimes>,
    /// The usage by owner since the server's start.
    pub(crate) usage: Usage,
    /// The counts of wrong tokens and passwords; `None` if nobody has to sign in.
    pub(crate) refused: Option<Arc<RefusedCredentials>>,
}

impl HubData {
    /// Returns the data that a client with this view may see.
    pub(crate) fn filter_for(self, view: &View) -> Self {
        let seen_by = |sample: Arc<Sample>| match view.filter_sample(&sample) {
            Cow::Borrowed(_) => sample,
            Cow::Owned(seen) => Arc::new(seen),
        };
        let sample = self.sample.map(seen_by);
        Self {
            sample,
            usage: view.filter_usage(self.usage),
            ..self
        }
    }

    /// Returns the newest sample if it is recent enough to show the state at `now_ms`.
    pub(crate) fn fresh_sample(&self, now_ms: u64) -> Option<&Sample> {
        let is_fresh = |sample: &&Sample| {
            !self.is_from_recording() && is_fresh_sample(sample, &self.collector, now_ms)
        };
        self.sample.as_deref().filter(is_fresh)
    }

    /// Returns `true` if the data is from a recording, and does not show the current state.
    pub(crate) fn is_from_recording(&self) -> bool {
        self.inventory
            .as_ref()
            .is_some_and(|inventory| inventory.playback.is_some())
    }
}

/// The data needed to evaluate alert rules.
pub(crate) struct AlertReadings {
    /// The newest sample, unless it is too old to show the current state.
    pub(crate) sample: Option<Arc<Sample>>,
    pub(crate) inventory: Option<Arc<Inventory>>,
    /// Whether GPUs are being read. This is `false` while the collector is paused or has not sent
    /// its first sample.
    pub(crate) is_watched: bool,
    /// The time at which the collector entered its current state.
    pub(crate) started_ms: u64,
}

impl Hub {
    /// Returns the data for evaluating alert rules. An immediate restart of the collector does not
    /// count as a gap in the readings.
    pub(crate) fn alert_readings(&self, now_ms: u64) -> AlertReadings {
        self.read_state(|state| {
            let interval_ms = state
                .sample
                .as_ref()
                .map_or(0, |sample| u64::from(sample.interval_ms));
            let is_recent =
                |at_ms: u64| now_ms.saturating_sub(at_ms) < late_sample_age_ms(interval_ms);
            let sample = state
                .sample
                .clone()
                .filter(|sample| is_recent(sample.at_ms));
            let is_watched = match state.collector.state {
                CollectorState::Paused | CollectorState::Starting => false,
                CollectorState::Running => sample.is_some() || !is_recent(state.collector.since_ms),
                CollectorState::Restarting | CollectorState::Unavailable => true,
            };
            let started_ms = state.collector.since_ms;
            AlertReadings {
                sample,
                inventory: state.inventory.clone(),
                is_watched,
                started_ms,
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use gpumon_probe::model::{GpuRef, XidReport};

    use super::*;

    #[test]
    fn each_error_of_each_gpu_is_counted() {
        let mut counts = XidCounts::default();
        let mut xid = |gpu: Option<u32>, code| {
            let gpu = gpu.map(|index| GpuRef { index, uuid: None });
            let report = XidReport {
                code,
                name: None,
                pid: None,
                meaning: String::new(),
                advice: String::new(),
                message: None,
            };
            counts.count_event(&Event {
                at_ms: 1,
                gpu,
                what: EventKind::Xid(report),
            });
        };
        for (gpu, code) in [(0, 79), (1, 13), (1, 79), (1, 13)] {
            xid(Some(gpu), code);
        }
        xid(None, 13);
        (0..10_000).for_each(|code| xid(Some(2), code));
        assert!(counts.gpu_counts(1).eq([(13, 2), (79, 1)]));
        assert_eq!(
            (counts.gpu_counts(0).count(), counts.gpu_counts(3).count()),
            (1, 0)
        );
        assert_eq!(counts.0.len(), MAX_XID_COUNTS);
    }
}
