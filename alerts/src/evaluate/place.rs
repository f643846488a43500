//! The state of a rule for one target.

use std::collections::{BTreeMap, BTreeSet};

use gpumon_probe::{
    derive::{Hysteresis, Moment, Observation},
    model::{Alert, FiringAlert, GpuRef, Inventory},
};
use serde::{Deserialize, Serialize};

use super::{Outcome, Readings, window::Window};
use crate::{
    rules::{Check, Rule, Watch},
    status::Status,
};

/// A target that a rule is evaluated for.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Place {
    /// The machine, or all of its GPUs while none is known.
    Machine,
    /// The GPU with this index.
    Gpu(u32),
    /// A missing GPU that the rule identifies by something other than its index.
    Missing(String),
}

#[derive(Debug)]
pub(super) struct PlaceState {
    /// The delays, with the description of the match. The description is empty if the match began
    /// before the program started.
    hysteresis: Hysteresis<String>,
    /// The window of values, for rules over a rate.
    pub(super) window: Option<Window>,
    firing: Option<FiringAlert>,
    /// The firing alert that each receiver was last notified of, and when.
    told: BTreeMap<String, (FiringAlert, u64)>,
}

impl PlaceState {
    pub(super) fn new(check: &Check) -> Self {
        let window = match &check.watch {
            Watch::Value {
                rate: Some(rate),
                subject,
                ..
            } => Some(Window::new(rate.over_ms, *subject)),
            _ => None,
        };
        let hysteresis = Hysteresis::new(check.for_ms, check.clear_for_ms);
        Self {
            hysteresis,
            window,
            firing: None,
            told: BTreeMap::new(),
        }
    }

    /// Restores the state from before the program's start. `fires` is whether the alert still
    /// fired, and `told_ms` when each receiver was notified of it.
    pub(super) fn earlier(
        alert: &FiringAlert,
        fires: bool,
        told_ms: BTreeMap<String, u64>,
    ) -> Self {
        Self {
            hysteresis: Hysteresis::new(0, 0),
            window: None,
            firing: fires.then(|| alert.clone()),
            told: told_ms
                .into_iter()
                .map(|(name, told_ms)| (name, (alert.clone(), told_ms)))
                .collect(),
        }
    }

    /// Continues a restored state with the rule's check. `since` is when a firing alert began.
    pub(super) fn resumed(self, check: &Check, since: Moment) -> Self {
        let mut state = Self {
            firing: self.firing,
            told: self.told,
            ..Self::new(check)
        };
        if let Some(firing) = &mut state.firing {
            // Earlier versions did not store this flag.
            firing.alert.names_processes = check.names_processes();
            state.hysteresis.resume(since, String::new());
        }
        state
    }

    /// Returns the alert that fires, or that some receivers still consider firing, with the
    /// receivers that were notified and when; `None` if there is no such alert.
    pub(super) fn told(&self) -> Option<(&FiringAlert, impl Iterator<Item = (&str, u64)>)> {
        let newest = || {
            self.told
                .values()
                .max_by_key(|(_, told_ms)| *told_ms)
                .map(|(alert, _)| alert)
        };
        let told = self
            .told
            .iter()
            .map(|(name, (_, told_ms))| (name.as_str(), *told_ms));
        Some((self.firing.as_ref().or_else(newest)?, told))
    }

    /// Returns `true` if the alert belongs to another GPU than the one that has its index now.
    pub(super) fn is_of_another(&self, place: &Place, inventory: Option<&Inventory>) -> bool {
        let uuid = |gpu: Option<GpuRef>| gpu.and_then(|gpu| gpu.uuid);
        let known = self.told().and_then(|(alert, _)| uuid(alert.gpu.clone()));
        known
            .zip(uuid(gpu_ref(place, inventory)))
            .is_some_and(|(known, now)| known != now)
    }

    /// Returns `true` if the rule fires.
    pub(super) fn lasts(&self) -> bool {
        self.hysteresis.lasts()
    }

    /// Returns since when the rule has matched without firing yet, and the description of the
    /// match.
    pub(super) fn pending(&self) -> Option<(Moment, &String)> {
        self.hysteresis.pending()
    }

    pub(super) fn firing(&self) -> Option<FiringAlert> {
        self.firing.clone()
    }

    /// Updates the state with an observation, and adds the resulting events to the outcome.
    pub(super) fn apply(
        &mut self,
        rule: &Rule,
        place: &Place,
        readings: &Readings<'_>,
        seen: Observation<String>,
        now: Moment,
        outcome: &mut Outcome,
    ) {
        let lasting = self.hysteresis.update(seen, now);
        match (lasting, &mut self.firing) {
            (Some((since, met)), None) => {
                let alert = FiringAlert {
                    gpu: gpu_ref(place, readings.inventory),
                    alert: Alert {
                        rule: rule.name.clone(),
                        severity: rule.severity,
                        since_ms: since.wall_ms,
                        text: text(rule, place, met),
                        silenced: false,
                        names_processes: rule.check.names_processes(),
                    },
                };
                outcome.tell(now.wall_ms, &alert, Status::Firing);
                self.firing = Some(alert);
            }
            (Some((_, met)), Some(firing)) => {
                // The text describes the current match, and the severity is that of the newest
                // rules.
                if !met.is_empty() {
                    firing.alert.text = text(rule, place, met);
                }
                firing.alert.severity = rule.severity;
            }
            (None, Some(_)) => {
                if let Some(firing) = self.firing.take() {
                    outcome.tell(now.wall_ms, &firing, Status::Resolved);
                }
            }
            (None, None) => {}
        }
    }

    /// Adds the notifications that receivers have not had yet, unless the rule is silenced.
    pub(super) fn notify(
        &mut self,
        rule: &Rule,
        is_silenced: bool,
        now_ms: u64,
        outcome: &mut Outcome,
    ) {
        if let Some(firing) = &mut self.firing {
            firing.alert.silenced = is_silenced;
        }
        if is_silenced {
            return;
        }
        let Some(firing) = &self.firing else {
            self.take_back(now_ms, outcome);
            return;
        };
        let is_due = |told_ms: u64| {
            // With the absolute difference, a clock that was set back does not delay the
            // repetition.
            rule.repeat_ms
                .is_some_and(|repeat_ms| now_ms.abs_diff(told_ms) >= repeat_ms)
        };
        let is_told = |name: &&String| {
            self.told
                .get(*name)
                .is_some_and(|(_, told_ms)| !is_due(*told_ms))
        };
        let due: Vec<String> = rule
            .notify
            .iter()
            .filter(|name| !is_told(name))
            .cloned()
            .collect();
        outcome.notify(now_ms, firing, Status::Firing, &due);
        self.told
            .extend(due.into_iter().map(|name| (name, (firing.clone(), now_ms))));
    }

    /// Forgets that these receivers were notified.
    pub(super) fn forget_told(&mut self, receivers: &BTreeSet<String>) {
        self.told.retain(|name, _| !receivers.contains(name));
    }

    /// Ends the alert because its rule or target was removed.
    pub(super) fn end(&mut self, now_ms: u64, outcome: &mut Outcome) {
        if let Some(firing) = self.firing.take() {
            outcome.tell(now_ms, &firing, Status::Resolved);
        }
        self.take_back(now_ms, outcome);
    }

    /// Notifies all receivers that were notified of the alert that it is resolved.
    fn take_back(&mut self, now_ms: u64, outcome: &mut Outcome) {
        let told = std::mem::take(&mut self.told);
        let receivers: Vec<String> = told.keys().cloned().collect();
        if let Some((alert, _)) = told.into_values().max_by_key(|(_, told_ms)| *told_ms) {
            outcome.notify(now_ms, &alert, Status::Resolved, &receivers);
        }
    }
}

fn text(rule: &Rule, place: &Place, met: &str) -> String {
    let text = match place {
        Place::Missing(uuid) => format!("{uuid}: {met}"),
        Place::Machine | Place::Gpu(_) => met.to_owned(),
    };
    match &rule.message {
        Some(message) => format!("{text}. {message}"),
        None => text,
    }
}

pub(super) fn gpu_ref(place: &Place, inventory: Option<&Inventory>) -> Option<GpuRef> {
    let Place::Gpu(index) = *place else {
        return None;
    };
    let gpu = inventory.and_then(|inventory| inventory.gpus.iter().find(|gpu| gpu.index == index));
    Some(GpuRef {
        index,
        uuid: gpu.and_then(|gpu| gpu.uuid.clone()),
    })
}
