//! The state of the live view: the newest readings of the selected GPUs and their history. Only
//! updates change this state. Before an update is applied, the data of all other GPUs is removed
//! from it.

use std::{
    collections::{BTreeSet, HashMap, VecDeque},
    mem,
};

use gpumon_history::span::HistorySpan;
use gpumon_probe::model::{
    Event, Gpu, GpuDetails, GpuRef, GpuSample, Inventory, Playback, Record, Sample, Vendor, now_ms,
};
use gpumon_server::frame::{self, CollectorState, CollectorStatus, Hello};

use super::{
    history::{ChartLine, History, Window},
    text::make_printable,
};
use crate::{
    describe::{self, Context},
    device_id::GpuLookupError,
    options::ShownGpus,
};

const MAX_EVENTS: usize = 200;

pub(crate) enum Update {
    Hello(Box<Hello>),
    Record(Box<Record>),
    /// The CPU usage of processes, for the sample that follows.
    Usage(Usage),
    History(frame::History),
    /// A longer history from the server.
    Past(Box<HistorySpan>),
    /// The reason why the server has not sent a longer history.
    NoPast(String),
    Collector(CollectorStatus),
    /// The reason why no data arrives, whether temporarily or permanently.
    Silent(String),
    /// The reason why the driver is read directly instead of through a server.
    Direct(String),
    /// The replay has jumped to another time and continues from there.
    Rewound,
}

impl Update {
    pub(super) fn sample(&self) -> Option<&Sample> {
        match self {
            Self::Hello(hello) => hello.sample.as_ref(),
            Self::Record(record) => match &**record {
                Record::Sample(sample) => Some(sample),
                _ => None,
            },
            _ => None,
        }
    }
}

/// The CPU usage of a sample's processes, by PID. Processes that could not be read are missing.
pub(crate) type Usage = HashMap<u32, ProcessUsage>;

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct ProcessUsage {
    /// CPU usage in percent of one CPU, or `None` until two readings can be compared.
    pub(super) cpu_percent: Option<f64>,
    pub(super) threads: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Origin {
    /// This program, which reads the driver directly.
    #[default]
    Driver,
    Server,
    /// The server of a fleet's node, on another machine.
    Node,
    Recording,
}

#[derive(Default, Clone)]
pub(crate) struct Model {
    pub(super) origin: Origin,
    pub(super) inventory: Option<Inventory>,
    pub(super) sample: Option<Sample>,
    pub(super) usage: Usage,
    /// The details of each GPU, in order of arrival.
    pub(super) details: Vec<GpuDetails>,
    /// Events, the oldest first.
    pub(super) events: VecDeque<Event>,
    pub(super) history: History,
    /// Whether a server has sent the history of all metrics that can be charted.
    pub(super) has_past: bool,
    /// The reason why no data arrives, or `None` if data arrives.
    pub(super) silent: Option<String>,
    /// The reason why the driver is read directly. `None` if readings come from a server, or if no
    /// server was tried.
    pub(super) direct: Option<String>,
    /// Whether the model is paused. No samples are expected while it is paused, so its data never
    /// counts as overdue.
    pub(super) paused: bool,
    pub(super) selection: Selection,
    /// The error for a selected GPU name that matches no GPU.
    pub(super) refused: Option<GpuLookupError>,
}

impl Model {
    pub(crate) fn new(origin: Origin) -> Self {
        Self {
            origin,
            ..Self::default()
        }
    }

    pub(crate) fn ingest(&mut self, mut update: Update) {
        match self.selection.retain_selected(&mut update) {
            Err(refused) => self.refused = Some(refused),
            Ok(()) if self.selection.is_irrelevant(&update) => return,
            Ok(()) => {}
        }
        match update {
            Update::Hello(hello) => self.apply_hello(*hello),
            Update::Record(record) => self.apply_record(*record),
            Update::Usage(usage) => self.usage = usage,
            Update::History(past) => {
                self.has_past = true;
                self.apply_history(&past);
            }
            Update::Past(past) => {
                let gpus = self
                    .inventory
                    .as_ref()
                    .map_or(&[][..], |inventory| &inventory.gpus);
                self.history
                    .set_server_rows(&past, |uuid| find_gpu_index(gpus, uuid));
            }
            // A missing history is reported once to the user, but it is not stored in the model.
            Update::NoPast(_) => {}
            Update::Collector(status) => self.apply_collector(&status),
            Update::Silent(why) => self.silent = Some(make_printable(&why)),
            Update::Direct(why) => {
                self.silent = None;
                self.direct = Some(make_printable(&why));
            }
            Update::Rewound => {
                *self = Self {
                    selection: mem::take(&mut self.selection),
                    ..Self::new(self.origin)
                }
            }
        }
    }

    fn apply_hello(&mut self, hello: Hello) {
        self.direct = None;
        self.apply_collector(&hello.collector);
        self.inventory = hello.inventory.or(self.inventory.take());
        if self.playback().is_some() {
            // A server that plays a recording may now be at another position, so the old history is
            // dropped.
            self.history = History::default();
        }
        self.apply_history(&hello.history);
        self.details = hello.details;
        self.events = hello.events.into();
        if let Some(sample) = hello.sample {
            self.apply_record(Record::Sample(sample));
        }
    }

    fn apply_history(&mut self, past: &frame::History) {
        let gpus = self
            .inventory
            .as_ref()
            .map_or(&[][..], |inventory| &inventory.gpus);
        let interval = self
            .sample
            .as_ref()
            .map_or(1000, |sample| sample.interval_ms);
        self.history
            .add_server_history(past, interval, |uuid| find_gpu_index(gpus, uuid));
    }

    fn apply_record(&mut self, record: Record) {
        match record {
            Record::Inventory(inventory) => self.inventory = Some(inventory),
            Record::Sample(sample) => {
                self.silent = None;
                self.history.push(&sample);
                self.sample = Some(sample);
            }
            Record::Details(details) => match self
                .details
                .iter_mut()
                .find(|known| known.index == details.index)
            {
                Some(known) => *known = details,
                None => self.details.push(details),
            },
            Record::Event(event) => {
                if self.events.len() == MAX_EVENTS {
                    self.events.pop_front();
                }
                // Events may arrive late, so each event is inserted in the order of time.
                let before = self
                    .events
                    .iter()
                    .rposition(|known| known.at_ms <= event.at_ms);
                self.events
                    .insert(before.map_or(0, |place| place + 1), event);
            }
            Record::Trace(_) | Record::Answers(_) => {}
        }
    }

    fn apply_collector(&mut self, status: &CollectorStatus) {
        let message = || {
            status
                .message
                .as_deref()
                .map_or_else(|| "unknown reason".to_owned(), make_printable)
        };
        self.silent = match status.state {
            CollectorState::Running => None,
            CollectorState::Starting => Some("the collector is starting".to_owned()),
            CollectorState::Restarting => {
                Some(format!("the collector is restarting: {}", message()))
            }
            CollectorState::Unavailable => Some(format!("no readings: {}", message())),
            CollectorState::Paused => Some(
                "gpumon is paused and has released the driver; run `gpumon resume` to continue"
                    .to_owned(),
            ),
        };
    }

    /// Returns the GPUs in the newest sample.
    pub(super) fn gpus(&self) -> &[GpuSample] {
        self.sample.as_ref().map_or(&[], |sample| &sample.gpus)
    }

    /// Returns the index of the selected GPU, or of the only GPU if none is selected.
    pub(super) fn selected_or_only_gpu(&self, selected: Option<u32>) -> Option<u32> {
        match self.gpus() {
            [only] => selected.or(Some(only.index)),
            _ => selected,
        }
    }

    pub(super) fn find_gpu(&self, index: u32) -> Option<&GpuSample> {
        self.gpus().iter().find(|gpu| gpu.index == index)
    }

    pub(super) fn find_vendor(&self, index: u32) -> Vendor {
        self.find_board(index)
            .map_or_else(Vendor::default, |gpu| gpu.vendor)
    }

    pub(super) fn find_board(&self, index: u32) -> Option<&Gpu> {
        self.inventory
            .as_ref()?
            .gpus
            .iter()
            .find(|gpu| gpu.index == index)
    }

    /// Returns a GPU's name without the vendor's name.
    pub(super) fn gpu_name(&self, index: u32) -> String {
        describe::format_name_without_vendor(self.find_board(index).map(|gpu| &gpu.name))
    }

    pub(super) fn find_details(&self, index: u32) -> Option<&GpuDetails> {
        self.details.iter().find(|details| details.index == index)
    }

    pub(super) fn is_simulated(&self) -> bool {
        self.inventory
            .as_ref()
            .is_some_and(|known| known.platform.is_simulated)
    }

    /// Returns the state of the server's replay, or `None` if the server sends live readings.
    pub(super) fn playback(&self) -> Option<&Playback> {
        self.inventory.as_ref()?.playback.as_ref()
    }

    /// Returns `true` if the data comes from a recording, which either this program or a server
    /// plays.
    pub(super) fn is_recorded(&self) -> bool {
        self.origin == Origin::Recording || self.playback().is_some()
    }

    /// Returns the time shown on the screen. This is the time of the newest sample, or this
    /// machine's clock if the next sample is overdue.
    pub(super) fn now_ms(&self) -> u64 {
        let newest = self.sample.as_ref().map_or(0, |sample| sample.at_ms);
        if self.is_recorded() || self.overdue_age_ms().is_none() {
            newest
        } else {
            now_ms()
        }
    }

    /// Returns the age of the newest sample in milliseconds, or `None` if the next sample is not
    /// overdue.
    pub(super) fn overdue_age_ms(&self) -> Option<u64> {
        let sample = self
            .sample
            .as_ref()
            .filter(|_| !self.is_recorded() && !self.paused)?;
        let age = now_ms().saturating_sub(sample.at_ms);
        (age > 2 * u64::from(sample.interval_ms) + 1500).then_some(age)
    }

    /// Returns `true` if the data is outdated and no newer data arrives.
    pub(super) fn is_stale(&self) -> bool {
        self.origin != Origin::Recording
            && !self.paused
            && (self.silent.is_some() || self.overdue_age_ms().is_some())
    }

    /// Returns the context for the descriptions of GPUs.
    pub(super) fn context(&self) -> Context {
        Context {
            now_ms: self.now_ms(),
            is_one_shot: false,
        }
    }

    pub(super) fn read_line_values(
        &self,
        line: ChartLine,
        span_ms: u64,
        columns: usize,
    ) -> Vec<Option<f64>> {
        self.history.read_line_values(
            line,
            Window {
                end_ms: self.now_ms(),
                span_ms,
                columns,
            },
        )
    }
}

fn find_gpu_index(gpus: &[Gpu], uuid: &str) -> Option<u32> {
    gpus.iter()
        .find(|gpu| gpu.uuid.as_deref() == Some(uuid))
        .map(|gpu| gpu.index)
}

/// The selected GPUs, to which updates are limited. `indices` are their indices in the newest
/// inventory.
#[derive(Debug, Clone, Default)]
pub(crate) struct Selection {
    shown: ShownGpus,
    /// Whether some GPUs may be hidden. This is stored, because finding it reads the environment,
    /// and it is needed for each GPU of each sample.
    may_hide_gpus: bool,
    indices: Option<BTreeSet<u32>>,
}

impl Selection {
    pub(crate) fn new(shown: ShownGpus) -> Self {
        Self {
            may_hide_gpus: shown.may_hide_gpus(),
            shown,
            indices: None,
        }
    }

    /// Removes all data of other GPUs from an update. Returns an error if a selected name matches
    /// no GPU.
    pub(super) fn retain_selected(&mut self, update: &mut Update) -> Result<(), GpuLookupError> {
        match update {
            Update::Hello(hello) => {
                if let Some(inventory) = &mut hello.inventory {
                    self.retain_inventory(inventory)?;
                }
                hello
                    .details
                    .retain(|details| self.includes_gpu(details.index));
                hello.events.retain(|event| self.includes_event(event));
                if let Some(sample) = &mut hello.sample {
                    self.retain_sample(sample);
                }
            }
            Update::Record(record) => match &mut **record {
                Record::Inventory(inventory) => self.retain_inventory(inventory)?,
                Record::Sample(sample) => self.retain_sample(sample),
                _ => {}
            },
            _ => {}
        }
        Ok(())
    }

    /// Returns `true` if the update only concerns GPUs that are not selected.
    pub(super) fn is_irrelevant(&self, update: &Update) -> bool {
        let Update::Record(record) = update else {
            return false;
        };
        match &**record {
            Record::Details(details) => !self.includes_gpu(details.index),
            Record::Event(event) => !self.includes_event(event),
            _ => false,
        }
    }

    fn retain_inventory(&mut self, inventory: &mut Inventory) -> Result<(), GpuLookupError> {
        self.indices = self.shown.find_indices(&inventory.gpus)?;
        inventory
            .gpus
            .retain(|gpu: &Gpu| self.includes_gpu(gpu.index));
        inventory
            .topology
            .retain(|link| self.includes_gpu(link.a) && self.includes_gpu(link.b));
        Ok(())
    }

    fn retain_sample(&self, sample: &mut Sample) {
        sample.gpus.retain(|gpu| self.includes_gpu(gpu.index));
    }

    fn includes_event(&self, event: &Event) -> bool {
        event
            .gpu
            .as_ref()
            .is_none_or(|GpuRef { index, .. }| self.includes_gpu(*index))
    }

    fn includes_gpu(&self, index: u32) -> bool {
        match &self.indices {
            Some(indices) => indices.contains(&index),
            None => !self.may_hide_gpus,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::top::testing;

    #[test]
    fn model_replaces_details_and_limits_events() {
        let mut model = testing::simulated_model(2);
        let again = model.details[1].clone();
        model.ingest(Update::Record(Box::new(Record::Details(again))));
        assert_eq!(model.details.len(), 2);
        for at_ms in 0..1000 {
            let event = Event {
                at_ms,
                gpu: None,
                what: gpumon_probe::model::EventKind::MigChanged,
            };
            model.ingest(Update::Record(Box::new(Record::Event(event))));
        }
        assert_eq!(
            (model.events.len(), model.events[MAX_EVENTS - 1].at_ms),
            (MAX_EVENTS, 999)
        );
    }

    #[test]
    fn next_sample_clears_silence_message() {
        let mut model = testing::simulated_model(1);
        model.ingest(Update::Silent("gone".to_owned()));
        assert!(model.silent.is_some());
        let sample = model.sample.clone().unwrap();
        model.ingest(Update::Record(Box::new(Record::Sample(sample))));
        assert_eq!(model.silent, None);
    }

    #[test]
    fn recording_is_never_shown_as_overdue() {
        let mut model = testing::simulated_model(1);
        model.sample.as_mut().unwrap().at_ms = 5000;
        assert!(model.overdue_age_ms().is_some());
        model.origin = Origin::Recording;
        assert_eq!((model.overdue_age_ms(), model.now_ms()), (None, 5000));
    }

    #[test]
    fn server_text_has_no_control_characters() {
        let mut model = testing::simulated_model(1);
        model.ingest(Update::Silent("gone\u{1b}[2J".to_owned()));
        assert_eq!(model.silent.as_deref(), Some("gone [2J"));
        let status = CollectorStatus {
            state: CollectorState::Unavailable,
            since_ms: u64::MAX,
            resumes_ms: None,
            joined: None,
            message: Some("a\u{9b}b".to_owned()),
        };
        model.ingest(Update::Collector(status));
        assert_eq!(model.silent.as_deref(), Some("no readings: a b"));
    }

    #[test]
    fn updates_keep_only_selected_gpus() {
        let moment = testing::sample_simulated_gpus(4);
        let mut model = Model {
            selection: Selection::new(ShownGpus::with_names(&["3", "1"])),
            ..Model::default()
        };
        let mut ingest = |record| model.ingest(Update::Record(Box::new(record)));
        ingest(Record::Inventory(moment.inventory.clone()));
        for details in moment.details {
            ingest(Record::Details(details));
        }
        ingest(Record::Sample(moment.sample));
        let event = |index| Event {
            at_ms: 0,
            gpu: Some(GpuRef { index, uuid: None }),
            what: gpumon_probe::model::EventKind::MigChanged,
        };
        ingest(Record::Event(event(0)));
        ingest(Record::Event(event(3)));
        assert!(model.gpus().iter().map(|gpu| gpu.index).eq([1, 3]));
        assert!(model.details.iter().map(|details| details.index).eq([1, 3]));
        assert_eq!(
            (model.inventory.unwrap().gpus.len(), model.events.len()),
            (2, 1)
        );
        let mut none = Selection::new(ShownGpus::with_names(&["7"]));
        let mut update = Update::Record(Box::new(Record::Inventory(moment.inventory)));
        assert!(
            none.retain_selected(&mut update)
                .unwrap_err()
                .to_string()
                .contains("there is no GPU '7': 0 to 3 are available")
        );
    }
}
