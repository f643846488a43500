//! The hub's current data, and the frames that contain it.

use std::sync::Arc;

use gpumon_history::wanted::Wanted;
use gpumon_probe::model::{EnergyPrice, Event, GpuRef, Health, KnownGpu, Sample, now_ms};

use super::{Hub, Known, VERSION, encode, notice, state::State, write_json};
use crate::{
    frame::{CollectorStatus, Hello, ServerFrame, Snapshot, is_fresh},
    refused_credentials::RefusedCredentials,
    snapshot_parts::SnapshotParts,
    stream::TextFrame,
    view::View,
};

/// The length of the history in a hello, in milliseconds. Clients request more when they show it.
const HELLO_MS: u64 = 5 * 60 * 1000;

impl Hub {
    /// Returns the current data, which is shared and not copied.
    pub(crate) fn known(&self) -> Known {
        let usage = self.usage();
        self.read(|state| Known {
            collector: state.collector.clone(),
            inventory: state.inventory.clone(),
            sample: state.sample.clone(),
            details: state.details.values().cloned().collect(),
            xids: state.xids.clone(),
            usage,
            refused: state.refused.clone(),
        })
    }

    /// Returns all known GPUs.
    pub(crate) fn gpus(&self) -> Vec<GpuRef> {
        self.read(|state| {
            let gpus = state.inventory.iter().flat_map(|inventory| &inventory.gpus);
            gpus.map(|gpu| GpuRef {
                index: gpu.index,
                uuid: gpu.uuid.clone(),
            })
            .collect()
        })
    }

    /// Returns the GPUs and their health, for the next collector.
    pub(crate) fn known_gpus(&self) -> Vec<KnownGpu> {
        self.read(|state| {
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
        self.read(|state| state.events.iter().cloned().collect())
    }

    /// Returns the state of the collector.
    pub(crate) fn collector(&self) -> CollectorStatus {
        self.read(|state| state.collector.clone())
    }

    /// Adds the counts of refused credentials to the metrics.
    pub(crate) fn count_refusals(&self, refused: Arc<RefusedCredentials>) {
        self.write(|state| state.refused = Some(refused));
    }

    /// Marks all further hellos with the fleet at `/api/v1/fleet`.
    pub(crate) fn tell_of_fleet(&self) {
        self.write(|state| state.has_fleet = true);
    }

    /// Sets the price of energy in all further hellos.
    pub(crate) fn set_energy_price(&self, price: EnergyPrice) {
        self.write(|state| state.energy_price = Some(price));
    }

    /// Returns the hello for a new client.
    pub(crate) fn hello(&self, view: &View) -> String {
        let (collector, inventory, sample, details, events, alerts, fleet, energy_price) = self
            .read(|state| {
                let details: Vec<_> = state.details.values().cloned().collect();
                let events: Vec<_> = state
                    .events
                    .iter()
                    .filter_map(|event| view.event(event))
                    .collect();
                let (inventory, sample) = (state.inventory.clone(), state.sample.clone());
                let alerts = view.alerts(state.firing());
                (
                    state.collector.clone(),
                    inventory,
                    sample,
                    details,
                    events,
                    alerts,
                    state.has_fleet,
                    state.energy_price.clone(),
                )
            });
        write_json(&ServerFrame::Hello(Hello {
            version: VERSION.to_owned(),
            at_ms: self.now_ms(),
            collector,
            inventory: inventory.map(Arc::unwrap_or_clone),
            sample: sample.map(|sample| view.sample(&sample).into_owned()),
            details: details
                .into_iter()
                .map(Arc::unwrap_or_clone)
                .map(|details| view.details(details))
                .collect(),
            events,
            alerts,
            history: self.newest(HELLO_MS, &Wanted::overview()),
            fleet,
            energy_price,
        }))
    }

    /// Returns a history frame with the wanted metrics.
    pub(crate) fn history(&self, wanted: &Wanted, view: &View) -> String {
        write_json(&ServerFrame::History(
            view.history(self.newest(u64::MAX, wanted)),
        ))
    }

    /// Returns the states that are only sent after a change, for a client that may have missed one.
    /// Details are not included, because they are sent regularly.
    pub(crate) fn current_state(&self, view: &View) -> Vec<TextFrame> {
        let (collector, inventory, firing) = self.read(|state| {
            (
                state.collector.clone(),
                state.inventory_line.clone(),
                state.firing(),
            )
        });
        let collector = encode(&ServerFrame::Collector(collector));
        inventory
            .into_iter()
            .chain([notice::alerts(view.alerts(firing)), collector])
            .collect()
    }

    /// Returns the requested parts of the current data.
    pub(crate) fn snapshot(&self, parts: &SnapshotParts) -> Snapshot {
        let mut snapshot = self.read(|state| Snapshot {
            version: VERSION.to_owned(),
            collector: state.collector.clone(),
            inventory: state.inventory.as_deref().cloned(),
            sample: state
                .sample
                .as_deref()
                .map(|sample| parts.view.sample(sample).into_owned()),
            details: state
                .details
                .values()
                .filter(|_| !parts.brief)
                .map(|details| parts.view.details((**details).clone()))
                .collect(),
            events: state
                .events
                .iter()
                .filter(|_| !parts.brief)
                .filter_map(|event| parts.view.event(event))
                .collect(),
            alerts: parts.view.alerts(state.firing()),
            history: None,
        });
        snapshot.history = parts
            .history_ms
            .map(|reach_ms| parts.view.history(self.newest(reach_ms, &parts.wanted)));
        snapshot
    }

    /// Returns the current time, or the time of the newest sample of a recording.
    pub(crate) fn now_ms(&self) -> u64 {
        let played = |state: &State| state.played_at_ms();
        self.read(played).unwrap_or_else(now_ms)
    }

    /// Returns `true` if the newest sample shows the current state.
    pub(crate) fn is_fresh(&self, now_ms: u64) -> bool {
        self.fresh_sample(now_ms).is_some()
    }

    /// Returns the newest sample if it shows the current state.
    pub(crate) fn fresh_sample(&self, now_ms: u64) -> Option<Arc<Sample>> {
        self.read(|state| {
            let is_fresh = |sample: &&Arc<Sample>| is_fresh(sample, &state.collector, now_ms);
            state
                .sample
                .as_ref()
                .filter(|_| state.played_at_ms().is_none())
                .filter(is_fresh)
                .cloned()
        })
    }
}
