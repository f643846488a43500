//! What the collector said last, and the way from there to every client.
//!
//! A sample is encoded once, by the collector; its line is shared by all clients. Samples go through a `watch`, where
//! the newest wins for a client that is slow; everything else goes through a `broadcast`, where each one counts.

use std::{
    collections::{BTreeMap, VecDeque, btree_map::Entry},
    sync::{Arc, PoisonError, RwLock},
    time::Duration,
};

use axum::extract::ws::Utf8Bytes;
use gpumon_probe::{
    model::{Event, GpuDetails, GpuRef, Inventory, Record, Sample, now_ms},
    question::Sheet,
};
use tokio::{
    sync::{broadcast, watch},
    time::Instant,
};

use crate::{
    answers::Answers,
    frame::{CollectorState, CollectorStatus, Hello, ServerFrame, Snapshot},
    history::{HistoryStore, Wanted},
    record,
    snapshot::Parts,
};

/// This many events and states may queue up for a slow client before it is told that it missed some.
const NOTICES: usize = 256;

/// So many traces may queue up for a slow client that asked for them.
const TRACES: usize = 256;

/// So many events are remembered for clients to come.
const EVENTS: usize = 256;

/// gpumon's version, as clients see it.
pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The meeting point of the collector and the clients.
pub(crate) struct Hub {
    state: RwLock<State>,
    samples: watch::Sender<SampleFrame>,
    notices: broadcast::Sender<Utf8Bytes>,
    traces: broadcast::Sender<Utf8Bytes>,
}

struct State {
    collector: CollectorStatus,
    inventory: Option<Inventory>,
    sample: Option<Arc<Sample>>,
    details: BTreeMap<u32, GpuDetails>,
    sheets: BTreeMap<u32, Sheet>,
    events: VecDeque<Event>,
    history: HistoryStore,
}

impl State {
    /// Takes in what is there. Details of a GPU that is there no more, or is another one, tell nothing any more; those
    /// of the others stay until new ones come.
    fn is_there(&mut self, inventory: Inventory) {
        self.details.retain(|index, details| {
            let gpu = inventory.gpus.iter().find(|gpu| gpu.index == *index);
            gpu.is_some_and(|gpu| gpu.uuid.is_none() || gpu.uuid == details.uuid)
        });
        self.sheets.retain(|index, _| self.details.contains_key(index));
        self.inventory = Some(inventory);
    }

    fn is_answered(&mut self, sheet: Sheet) {
        match self.sheets.entry(sheet.index) {
            Entry::Occupied(mut own) => own.get_mut().update(sheet),
            Entry::Vacant(empty) => {
                empty.insert(sheet);
            }
        }
    }

    fn remember(&mut self, event: Event) {
        if self.events.len() == EVENTS {
            self.events.pop_front();
        }
        self.events.push_back(event);
    }
}

/// A sample as it travels.
#[derive(Debug, Clone)]
pub(crate) struct SampleFrame {
    /// Counts the samples that went through this hub, so that a client's gap can be told in numbers.
    pub(crate) number: u64,
    /// When it came.
    pub(crate) at: Instant,
    /// The time after which the next is to come.
    pub(crate) apart: Duration,
    /// The collector's line.
    pub(crate) text: Utf8Bytes,
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
                },
                inventory: None,
                sample: None,
                details: BTreeMap::new(),
                sheets: BTreeMap::new(),
                events: VecDeque::new(),
                history: HistoryStore::default(),
            }),
            samples: watch::Sender::new(SampleFrame {
                number: 0,
                at: Instant::now(),
                apart: Duration::ZERO,
                text: Utf8Bytes::default(),
            }),
            notices: broadcast::Sender::new(NOTICES),
            traces: broadcast::Sender::new(TRACES),
        }
    }

    /// Takes in one line of the collector.
    ///
    /// # Errors
    /// Where the line is not a record.
    pub(crate) fn take_in(&self, line: String) -> Result<(), serde_json::Error> {
        let record = record::decode(&line)?;
        self.collector_is(CollectorState::Running, None);
        match record {
            Record::Inventory(inventory) => {
                self.write(|state| state.is_there(inventory));
                self.notify(line.into());
            }
            Record::Details(details) => {
                self.write(|state| state.details.insert(details.index, details));
                self.notify(line.into());
            }
            Record::Answers(sheet) => self.write(|state| state.is_answered(sheet)),
            Record::Trace(_) => {
                // An error means that nobody asked for traces.
                let _ = self.traces.send(line.into());
            }
            Record::Event(event) => {
                self.write(|state| state.remember(event));
                self.notify(line.into());
            }
            Record::Sample(sample) => {
                let apart = Duration::from_millis(sample.interval_ms.into());
                self.write(|state| {
                    state.history.push(&sample);
                    state.sample = Some(Arc::new(sample));
                });
                self.samples.send_modify(|frame| {
                    *frame = SampleFrame { number: frame.number + 1, at: Instant::now(), apart, text: line.into() };
                });
            }
        }
        Ok(())
    }

    /// Takes in the collector's state; a change is told to every client.
    pub(crate) fn collector_is(&self, collector: CollectorState, message: Option<String>) {
        self.collector_status(collector, message, None);
    }

    /// Takes in that there is no collector, and until when if that is known.
    pub(crate) fn collector_is_paused(&self, message: String, resumes_ms: Option<u64>) {
        self.collector_status(CollectorState::Paused, Some(message), resumes_ms);
    }

    fn collector_status(&self, collector: CollectorState, message: Option<String>, resumes_ms: Option<u64>) {
        let is_known = |known: &CollectorStatus| {
            known.state == collector && known.message == message && known.resumes_ms == resumes_ms
        };
        if self.read(|state| is_known(&state.collector)) {
            return;
        }
        let status = self.write(|state| {
            let since_ms = if state.collector.state == collector { state.collector.since_ms } else { now_ms() };
            state.collector = CollectorStatus { state: collector, since_ms, message, resumes_ms };
            state.collector.clone()
        });
        self.notify(encode(&ServerFrame::Collector(status)));
    }

    /// Takes in what happened in this process, and not in the collector.
    pub(crate) fn happened(&self, event: Event) {
        self.write(|state| state.remember(event.clone()));
        self.notify(encode(&ServerFrame::Event(event)));
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
    pub(crate) fn hello(&self) -> Utf8Bytes {
        encode(&self.read(|state| {
            ServerFrame::Hello(Hello {
                version: VERSION.to_owned(),
                at_ms: now_ms(),
                collector: state.collector.clone(),
                inventory: state.inventory.clone(),
                sample: state.sample.as_deref().cloned(),
                details: state.details.values().cloned().collect(),
                events: state.events.iter().cloned().collect(),
                history: state.history.frame(&Wanted::overview()),
            })
        }))
    }

    /// What is wanted of the recent past alone.
    pub(crate) fn history(&self, wanted: &Wanted) -> Utf8Bytes {
        encode(&self.read(|state| ServerFrame::History(state.history.frame(wanted))))
    }

    /// Everything known now, as far as it is asked for.
    pub(crate) fn snapshot(&self, parts: &Parts) -> Snapshot {
        self.read(|state| Snapshot {
            version: VERSION.to_owned(),
            collector: state.collector.clone(),
            inventory: state.inventory.clone(),
            sample: state.sample.as_deref().cloned(),
            details: state.details.values().filter(|_| !parts.brief).cloned().collect(),
            events: state.events.iter().filter(|_| !parts.brief).cloned().collect(),
            history: parts.history_ms.map(|reach_ms| state.history.newest(reach_ms, &parts.wanted)),
        })
    }

    /// Everything that questions in the driver's own vocabulary are answered from.
    pub(crate) fn answers(&self) -> Answers {
        self.read(|state| Answers {
            collector: state.collector.clone(),
            inventory: state.inventory.clone(),
            sample: state.sample.as_deref().cloned(),
            details: state.details.values().cloned().collect(),
            sheets: state.sheets.values().cloned().collect(),
        })
    }

    /// The samples to come.
    pub(crate) fn samples(&self) -> watch::Receiver<SampleFrame> {
        self.samples.subscribe()
    }

    /// The events and states to come.
    pub(crate) fn notices(&self) -> broadcast::Receiver<Utf8Bytes> {
        self.notices.subscribe()
    }

    /// The traces to come.
    pub(crate) fn traces(&self) -> broadcast::Receiver<Utf8Bytes> {
        self.traces.subscribe()
    }

    fn notify(&self, text: Utf8Bytes) {
        // An error means that no client is connected.
        let _ = self.notices.send(text);
    }

    fn read<T>(&self, read: impl FnOnce(&State) -> T) -> T {
        read(&self.state.read().unwrap_or_else(PoisonError::into_inner))
    }

    fn write<T>(&self, write: impl FnOnce(&mut State) -> T) -> T {
        write(&mut self.state.write().unwrap_or_else(PoisonError::into_inner))
    }
}

/// A frame as text.
pub(crate) fn encode(frame: &ServerFrame) -> Utf8Bytes {
    serde_json::to_string(frame).expect("frames have string keys and no failing parts").into()
}
