//! The state of the live view: the newest readings and their history.

use std::{
    collections::{HashMap, VecDeque},
    mem,
};

use gpumon_history::span::HistorySpan;
use gpumon_probe::model::{
    Event, Gpu, GpuDetails, GpuSample, Inventory, Playback, Record, Sample, Vendor, now_ms,
};
use gpumon_server::frame::{self, CollectorState, CollectorStatus, Hello};

use super::{
    history::{History, Line, Window},
    selection::Selection,
    text::printable,
};
use crate::{
    describe::{self, Context},
    device_id::NoSuchGpu,
};

const EVENTS: usize = 200;

pub(crate) enum Update {
    Hello(Box<Hello>),
    Record(Box<Record>),
    /// The usage of the processes of the sample that follows.
    Usage(Usage),
    History(frame::History),
    /// A longer history from the server.
    Past(Box<HistorySpan>),
    /// The reason why the server sends no longer history.
    NoPast(String),
    Collector(CollectorStatus),
    /// The reason why no data arrives at present, or why no more will.
    Silent(String),
    /// The reason why the driver is read directly instead of through a server.
    Direct(String),
    /// The replay starts again at another time.
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

/// The CPU usage of the processes of a sample by PID, if it could be read.
pub(crate) type Usage = HashMap<u32, ProcessUsage>;

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct ProcessUsage {
    /// Percent of one CPU, or `None` until there are two readings to compare.
    pub(super) cpu_percent: Option<f64>,
    pub(super) threads: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Origin {
    /// This program reads the driver directly.
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
    /// Details by GPU, in order of arrival.
    pub(super) details: Vec<GpuDetails>,
    /// Events, the oldest first.
    pub(super) events: VecDeque<Event>,
    pub(super) history: History,
    /// Whether a server has sent the history of everything that can be charted.
    pub(super) has_past: bool,
    /// The reason why no data arrives, or `None` if it does.
    pub(super) silent: Option<String>,
    /// The reason why the driver is read directly, or `None` if a server is the source or none was
    /// tried.
    pub(super) direct: Option<String>,
    /// Whether the model is frozen. A frozen model is never late.
    pub(super) paused: bool,
    pub(super) selection: Selection,
    /// The selected GPU name that no GPU has.
    pub(super) refused: Option<NoSuchGpu>,
}

impl Model {
    pub(crate) fn new(origin: Origin) -> Self {
        Self {
            origin,
            ..Self::default()
        }
    }

    pub(crate) fn ingest(&mut self, mut update: Update) {
        match self.selection.retain(&mut update) {
            Err(refused) => self.refused = Some(refused),
            Ok(()) if self.selection.omits(&update) => return,
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
                self.history.set_past(&past, |uuid| index_of(gpus, uuid));
            }
            // The absence of a history is reported once and is not part of the model.
            Update::NoPast(_) => {}
            Update::Collector(status) => self.apply_collector(&status),
            Update::Silent(why) => self.silent = Some(printable(&why)),
            Update::Direct(why) => {
                self.silent = None;
                self.direct = Some(printable(&why));
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
            // The server may play the recording from another time.
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
            .extend(past, interval, |uuid| index_of(gpus, uuid));
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
                if self.events.len() == EVENTS {
                    self.events.pop_front();
                }
                // An event may be older than the events already recorded.
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
                .map_or_else(|| "unknown reason".to_owned(), printable)
        };
        self.silent = match status.state {
            CollectorState::Running => None,
            CollectorState::Starting => Some("the collector is starting".to_owned()),
            CollectorState::Restarting => {
                Some(format!("the collector is restarting: {}", message()))
            }
            CollectorState::Unavailable => Some(format!("nothing to read: {}", message())),
            CollectorState::Paused => {
                Some("paused, the driver is released; run `gpumon resume` to continue".to_owned())
            }
        };
    }

    /// The GPUs of the newest sample.
    pub(super) fn gpus(&self) -> &[GpuSample] {
        self.sample.as_ref().map_or(&[], |sample| &sample.gpus)
    }

    pub(super) fn gpu(&self, index: u32) -> Option<&GpuSample> {
        self.gpus().iter().find(|gpu| gpu.index == index)
    }

    pub(super) fn find_vendor(&self, index: u32) -> Vendor {
        self.board(index)
            .map_or_else(Vendor::default, |gpu| gpu.vendor)
    }

    pub(super) fn board(&self, index: u32) -> Option<&Gpu> {
        self.inventory
            .as_ref()?
            .gpus
            .iter()
            .find(|gpu| gpu.index == index)
    }

    /// Returns a GPU's name without the vendor, which is the same for all GPUs.
    pub(super) fn name(&self, index: u32) -> String {
        describe::full_name(self.board(index).map(|gpu| &gpu.name))
    }

    pub(super) fn details(&self, index: u32) -> Option<&GpuDetails> {
        self.details.iter().find(|details| details.index == index)
    }

    pub(super) fn is_simulated(&self) -> bool {
        self.inventory
            .as_ref()
            .is_some_and(|known| known.platform.is_simulated)
    }

    /// Returns the state of the server's replay, or `None` if the server sends live data.
    pub(super) fn playback(&self) -> Option<&Playback> {
        self.inventory.as_ref()?.playback.as_ref()
    }

    /// Returns `true` if the data was recorded earlier, by this machine or a server.
    pub(super) fn is_recording(&self) -> bool {
        self.origin == Origin::Recording || self.playback().is_some()
    }

    /// Returns the time that the screen shows: the time of the newest sample, or this machine's
    /// clock if the sample is late.
    pub(super) fn now_ms(&self) -> u64 {
        let newest = self.sample.as_ref().map_or(0, |sample| sample.at_ms);
        if self.is_recording() || self.late_ms().is_none() {
            newest
        } else {
            now_ms()
        }
    }

    /// Returns the age of the newest sample in milliseconds if the next one is overdue.
    pub(super) fn late_ms(&self) -> Option<u64> {
        let sample = self
            .sample
            .as_ref()
            .filter(|_| !self.is_recording() && !self.paused)?;
        let age = now_ms().saturating_sub(sample.at_ms);
        (age > 2 * u64::from(sample.interval_ms) + 1500).then_some(age)
    }

    /// Returns `true` if the data is outdated and nothing newer arrives.
    pub(super) fn is_stale(&self) -> bool {
        self.origin != Origin::Recording
            && !self.paused
            && (self.silent.is_some() || self.late_ms().is_some())
    }

    /// Returns the context that decides how GPUs are described.
    pub(super) fn context(&self) -> Context {
        Context {
            now_ms: self.now_ms(),
            is_one_shot: false,
        }
    }

    pub(super) fn line(&self, line: Line, span_ms: u64, columns: usize) -> Vec<Option<f64>> {
        self.history.values(
            line,
            Window {
                end_ms: self.now_ms(),
                span_ms,
                columns,
            },
        )
    }
}

fn index_of(gpus: &[Gpu], uuid: &str) -> Option<u32> {
    gpus.iter()
        .find(|gpu| gpu.uuid.as_deref() == Some(uuid))
        .map(|gpu| gpu.index)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::top::testing;

    #[test]
    fn details_of_a_gpu_replace_those_before_and_events_are_bounded() {
        let mut model = testing::model(2);
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
            (model.events.len(), model.events[EVENTS - 1].at_ms),
            (EVENTS, 999)
        );
    }

    #[test]
    fn silence_ends_with_the_next_sample() {
        let mut model = testing::model(1);
        model.ingest(Update::Silent("gone".to_owned()));
        assert!(model.silent.is_some());
        let sample = model.sample.clone().unwrap();
        model.ingest(Update::Record(Box::new(Record::Sample(sample))));
        assert_eq!(model.silent, None);
    }

    #[test]
    fn a_recording_is_never_late() {
        let mut model = testing::model(1);
        model.sample.as_mut().unwrap().at_ms = 5000;
        assert!(model.late_ms().is_some());
        model.origin = Origin::Recording;
        assert_eq!((model.late_ms(), model.now_ms()), (None, 5000));
    }

    #[test]
    fn what_a_server_says_cannot_drive_the_terminal() {
        let mut model = testing::model(1);
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
        assert_eq!(model.silent.as_deref(), Some("nothing to read: a b"));
    }
}
