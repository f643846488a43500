//! The hub's current data, the driver's answers, and the frames that contain them.

use std::{sync::Arc, time::Duration};

use gpumon_history::span::MetricSelection;
use gpumon_probe::{
    model::{EnergyPrice, Event, GpuRef, Health, KnownGpu, Sample, now_ms},
    vendor::GpuAnswers,
};
use tokio::{sync::watch, time::timeout};

use super::{Hub, HubData, HubState, VERSION, encode, shared_frames, to_json};
use crate::{
    audit::RefusedCredentials,
    frame::{
        Answers, CollectorState, CollectorStatus, Hello, ServerFrame, Snapshot, is_fresh_sample,
    },
    stream::TextFrame,
    view::View,
};

/// The length of the history in a hello frame, in milliseconds. Clients request longer histories
/// when they show them.
const HELLO_MS: u64 = 5 * 60 * 1000;

/// The parts of a snapshot.
pub(crate) struct SnapshotParts {
    pub(crate) history_ms: Option<u64>,
    pub(crate) wanted: MetricSelection,
    pub(crate) brief: bool,
    pub(crate) view: View,
}

impl Default for SnapshotParts {
    fn default() -> Self {
        Self {
            history_ms: None,
            wanted: MetricSelection::select_gpu_charts(),
            brief: false,
            view: View::Whole,
        }
    }
}

impl Hub {
    /// Returns the current data. The data is shared, not copied.
    pub(crate) fn current_data(&self) -> HubData {
        let usage = self.usage();
        self.read_state(|state| HubData {
            collector: state.collector.clone(),
            inventory: state.inventory.clone(),
            sample: state.sample.clone(),
            details: state.details.values().cloned().collect(),
            xids: state.xids.clone(),
            limit_times: Arc::clone(&state.limit_times),
            usage,
            refused: state.refused.clone(),
        })
    }

    /// Returns all known GPUs.
    pub(crate) fn gpus(&self) -> Vec<GpuRef> {
        self.read_state(|state| {
            let gpus = state.inventory.iter().flat_map(|inventory| &inventory.gpus);
            gpus.map(|gpu| GpuRef {
                index: gpu.index,
                uuid: gpu.uuid.clone(),
            })
            .collect()
        })
    }

    /// Returns the known GPUs and their health. A restarted collector receives this list.
    pub(crate) fn known_gpus(&self) -> Vec<KnownGpu> {
        self.read_state(|state| {
            let health = |index: u32| {
                let gpus = state.sample.iter().flat_map(|sample| &sample.gpus);
                gpus.clone()
                    .find(|gpu| gpu.index == index)
                    .map_or(Health::Ok, |gpu| gpu.health.clone())
            };
            let gpus = state.inventory.iter().flat_map(|inventory| &inventory.gpus);
            gpus.map(|gpu| KnownGpu {
                gpu: gpu.clone(),
                health: health(gpu.index),
            })
            .collect()
        })
    }

    /// Returns the recent events, the oldest first.
    pub(crate) fn recent_events(&self) -> Vec<Event> {
        self.read_state(|state| state.events.iter().cloned().collect())
    }

    /// Returns the collector's state.
    pub(crate) fn collector_status(&self) -> CollectorStatus {
        self.read_state(|state| state.collector.clone())
    }

    /// Sets the counts of refused credentials, which the metrics report.
    pub(crate) fn set_refusal_counts(&self, refused: Arc<RefusedCredentials>) {
        self.write_state(|state| state.refused = Some(refused));
    }

    /// Makes all further hello frames report that this server shows a fleet at `/api/v1/fleet`.
    pub(crate) fn set_has_fleet(&self) {
        self.write_state(|state| state.has_fleet = true);
    }

    /// Sets the price of energy, which all further hello frames contain.
    pub(crate) fn set_energy_price(&self, price: EnergyPrice) {
        self.write_state(|state| state.energy_price = Some(price));
    }

    /// Returns the hello frame for a new client with this view.
    pub(crate) fn encode_hello(&self, view: &View) -> String {
        let Snapshot {
            version,
            collector,
            inventory,
            sample,
            details,
            events,
            alerts,
            history,
        } = self.take_snapshot(&SnapshotParts {
            history_ms: Some(HELLO_MS),
            wanted: MetricSelection::select_overview(),
            brief: false,
            view: view.clone(),
        });
        let (fleet, energy_price) =
            self.read_state(|state| (state.has_fleet, state.energy_price.clone()));
        to_json(&ServerFrame::Hello(Hello {
            version,
            at_ms: self.now_ms(),
            collector,
            inventory,
            sample,
            details,
            events,
            alerts,
            history: history.unwrap_or_default(),
            fleet,
            energy_price,
        }))
    }

    /// Returns a history frame with the requested metrics.
    pub(crate) fn encode_history(&self, wanted: &MetricSelection, view: &View) -> String {
        to_json(&ServerFrame::History(
            view.filter_history(self.recent_history(u64::MAX, wanted)),
        ))
    }

    /// Returns the frames that are otherwise only sent after a change: the inventory, the alerts
    /// and the collector's state. They are for a client that may have missed a change. Details are
    /// not included, because they are sent regularly.
    pub(crate) fn encode_current_state(&self, view: &View) -> Vec<TextFrame> {
        let (collector, inventory, firing) = self.read_state(|state| {
            (
                state.collector.clone(),
                state.inventory_line.clone(),
                state.firing_alerts(),
            )
        });
        let collector = encode(&ServerFrame::Collector(collector));
        inventory
            .into_iter()
            .chain([
                shared_frames::alerts_frame(view.filter_alerts(firing)),
                collector,
            ])
            .collect()
    }

    /// Returns the requested parts of the current data.
    pub(crate) fn take_snapshot(&self, parts: &SnapshotParts) -> Snapshot {
        let SnapshotParts {
            history_ms,
            wanted,
            brief,
            view,
        } = parts;
        // The inventory, the sample and the details can be large, so they are copied after the lock
        // is released.
        let (inventory, sample, details, mut snapshot) = self.read_state(|state| {
            let details: Vec<_> = if *brief {
                Vec::new()
            } else {
                state.details.values().cloned().collect()
            };
            let events = state.events.iter().filter(|_| !brief);
            let snapshot = Snapshot {
                version: VERSION.to_owned(),
                collector: state.collector.clone(),
                inventory: None,
                sample: None,
                details: Vec::new(),
                events: events
                    .filter_map(|event| view.filter_event(event))
                    .collect(),
                alerts: view.filter_alerts(state.firing_alerts()),
                history: None,
            };
            let (inventory, sample) = (state.inventory.clone(), state.sample.clone());
            (inventory, sample, details, snapshot)
        });
        snapshot.inventory = inventory.map(Arc::unwrap_or_clone);
        snapshot.sample = sample.map(|sample| view.filter_sample(&sample).into_owned());
        snapshot.details = details
            .into_iter()
            .map(|details| view.filter_details(Arc::unwrap_or_clone(details)))
            .collect();
        snapshot.history =
            history_ms.map(|reach_ms| view.filter_history(self.recent_history(reach_ms, wanted)));
        snapshot
    }

    /// Returns the current time or, while a recording is played, the time of its newest sample.
    pub(crate) fn now_ms(&self) -> u64 {
        let played = |state: &HubState| state.recording_time_ms();
        self.read_state(played).unwrap_or_else(now_ms)
    }

    /// Returns `true` if the newest sample shows the current state.
    pub(crate) fn is_fresh(&self, now_ms: u64) -> bool {
        self.fresh_sample(now_ms).is_some()
    }

    /// Returns the newest sample if it shows the current state.
    pub(crate) fn fresh_sample(&self, now_ms: u64) -> Option<Arc<Sample>> {
        self.read_state(|state| {
            let is_fresh =
                |sample: &&Arc<Sample>| is_fresh_sample(sample, &state.collector, now_ms);
            state
                .sample
                .as_ref()
                .filter(|_| state.recording_time_ms().is_none())
                .filter(is_fresh)
                .cloned()
        })
    }
}

// The driver's answers, for programs that print readings in the driver's own terms.

/// The time limit for the collector to send the driver's answers. The collector does this without
/// calling the driver.
const ANSWERS_TIMEOUT: Duration = Duration::from_millis(250);

impl Hub {
    /// Requests the driver's answers for the newest sample, and waits until they have arrived, with
    /// a time limit.
    pub(crate) async fn refresh_driver_answers(&self) {
        let newest = self.samples.borrow().number;
        let mut known = self.known_answers.subscribe();
        if *known.borrow_and_update() < newest
            && self.collector_status().state == CollectorState::Running
        {
            self.wanted_answers
                .send_if_modified(|wanted| std::mem::replace(wanted, newest) != newest);
            let _ = timeout(ANSWERS_TIMEOUT, known.wait_for(|known| *known >= newest)).await;
        }
    }

    /// Returns a channel that changes whenever the collector should send the driver's answers.
    pub(crate) fn subscribe_answer_requests(&self) -> watch::Receiver<u64> {
        self.wanted_answers.subscribe()
    }

    /// Returns the driver's answers, and the state of the collector and of the GPUs.
    pub(crate) fn driver_answers(&self) -> Answers {
        self.read_state(|state| {
            let of = |index| {
                state
                    .answers
                    .gpus
                    .iter()
                    .find(|(gpu, _)| *gpu == index)
                    .map(|(_, answers)| answers.clone())
            };
            let gpus = state
                .sample
                .iter()
                .flat_map(|sample| &sample.gpus)
                .map(|gpu| GpuAnswers {
                    index: gpu.index,
                    health: gpu.health.clone(),
                    answers: of(gpu.index).unwrap_or_default(),
                });
            // The vendors' tools address GPUs by the driver's indexes. While gpumon's indexes
            // differ from these, no platform is returned.
            let platform = state
                .inventory
                .as_ref()
                .filter(|_| !state.answers.renumbered);
            Answers {
                collector: state.collector.clone(),
                platform: platform.map(|inventory| inventory.platform.clone()),
                at_ms: state.sample.as_ref().map(|sample| sample.at_ms),
                interval_ms: state.sample.as_ref().map_or(0, |sample| sample.interval_ms),
                gpus: gpus.collect(),
            }
        })
    }
}
