//! From samples to alerts: for each rule and GPU a state machine (inactive, pending, firing,
//! resolved).
//!
//! [`observe`] says what a sample shows of a rule, [`window`] how fast a field changes; the delays
//! and the time that does not count are those of conditions. Nothing here looks at a clock: the
//! same samples make the same alerts.

mod observe;
mod place;
mod saved;
mod since_start;
mod status;
mod window;

use std::collections::{BTreeMap, BTreeSet};

use gpumon_probe::{
    derive::{Clock, ConditionSettings},
    model::{Event, FiringAlert, Inventory, Sample},
};
use jiff::tz::TimeZone;

use self::{
    place::{Place, PlaceState},
    since_start::SinceStart,
};
use crate::{
    notify::Notification,
    rules::{AlertRules, Quiet, Rule},
    status::Status,
};

pub use saved::SavedAlert;
pub use status::{PlaceStatus, RuleState, RuleStatus};

/// What is known at a moment.
#[derive(Debug, Clone, Copy)]
pub struct Readings<'a> {
    /// The newest sample; `None` where there is none, or it is too old to tell how things are.
    pub sample: Option<&'a Sample>,
    /// What there is; `None` until it is known.
    pub inventory: Option<&'a Inventory>,
    /// Whether GPUs are read at all: nothing counts during a pause, or before the first sample.
    pub is_watched: bool,
    /// When what reads them was started, which then knows of no condition; any other number is
    /// another start.
    pub started_ms: u64,
}

/// What has become of it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Outcome {
    /// What everybody is told.
    pub events: Vec<Event>,
    /// What receivers are told, with their names.
    pub notifications: Vec<(Notification, Vec<String>)>,
}

/// All rules, and how they are.
#[derive(Debug)]
pub struct Evaluator {
    clock: Clock,
    zone: TimeZone,
    conditions: ConditionSettings,
    since_start: SinceStart,
    rules: Vec<Watched>,
    /// Of rules that are no more.
    dropped: Vec<PlaceState>,
}

/// A rule, and how it is.
#[derive(Debug)]
struct Watched {
    rule: Rule,
    places: BTreeMap<Place, PlaceState>,
    /// By command, and not by the file.
    silenced_until_ms: Option<u64>,
}

impl Evaluator {
    /// Rules of which nothing is known yet. Hours of the day are those of this time zone, and
    /// conditions are found with these settings.
    pub fn new(rules: &AlertRules, zone: TimeZone, conditions: ConditionSettings) -> Self {
        let mut evaluator = Self {
            clock: Clock::default(),
            zone,
            conditions,
            since_start: SinceStart::default(),
            rules: Vec::new(),
            dropped: Vec::new(),
        };
        evaluator.replace(rules, &BTreeSet::new());
        evaluator
    }

    /// Takes other rules; of their receivers, these know nothing of what fires, and are told. One
    /// that watches for the same as before under its name goes on; what fires of the others is
    /// resolved by the next [`Self::update`].
    pub fn replace(&mut self, rules: &AlertRules, new_receivers: &BTreeSet<String>) {
        let mut known = std::mem::take(&mut self.rules);
        for rule in &rules.rules {
            let same = known
                .iter()
                .position(|old| old.rule.name == rule.name && old.rule.check == rule.check);
            let state = same.map(|at| known.swap_remove(at));
            self.rules.push(match state {
                Some(old) => Watched {
                    rule: rule.clone(),
                    ..old
                },
                None => Watched {
                    rule: rule.clone(),
                    places: BTreeMap::new(),
                    silenced_until_ms: None,
                },
            });
        }
        self.dropped.extend(
            known
                .into_iter()
                .flat_map(|watched| watched.places.into_values()),
        );
        let states = self
            .rules
            .iter_mut()
            .flat_map(|watched| watched.places.values_mut());
        states
            .chain(&mut self.dropped)
            .for_each(|state| state.forget_told(new_receivers));
    }

    /// Silences a rule until this moment, or ends that with `None`; false where there is no rule of
    /// this name.
    pub fn silence(&mut self, rule: &str, until_ms: Option<u64>) -> bool {
        let found = self
            .rules
            .iter_mut()
            .find(|watched| watched.rule.name == rule);
        found
            .map(|watched| watched.silenced_until_ms = until_ms)
            .is_some()
    }

    /// Takes in what is known now.
    pub fn update(&mut self, readings: &Readings<'_>, now_ms: u64) -> Outcome {
        let mut outcome = Outcome::default();
        let now = self.clock.advance(now_ms, readings.is_watched);
        self.since_start.update(readings, now);
        for mut state in std::mem::take(&mut self.dropped) {
            state.end(now_ms, &mut outcome);
        }
        for watched in &mut self.rules {
            watched.silenced_until_ms = watched
                .silenced_until_ms
                .filter(|until_ms| *until_ms > now_ms);
            let is_silenced = watched.is_silenced(now_ms, &self.zone);
            let Watched { rule, places, .. } = watched;
            if readings.is_watched {
                let there: BTreeSet<Place> = observe::places(&rule.check, readings).collect();
                // What there is may not be known yet.
                let inventory = readings.inventory;
                let is_over = |place: &Place, state: &mut PlaceState| {
                    inventory.is_some()
                        && (!there.contains(place) || state.is_of_another(place, inventory))
                };
                for (_, mut state) in places.extract_if(.., is_over) {
                    state.end(now_ms, &mut outcome);
                }
                for place in there {
                    let state = places
                        .entry(place.clone())
                        .or_insert_with(|| PlaceState::new(&rule.check));
                    if self.since_start.may_be_unfound(
                        &rule.check,
                        &place,
                        readings,
                        &self.conditions,
                    ) {
                        continue;
                    }
                    let seen = observe::observe(&rule.check, &place, readings, state);
                    state.apply(rule, &place, readings, seen, now, &mut outcome);
                }
            }
            for state in places.values_mut() {
                state.notify(rule, is_silenced, now_ms, &mut outcome);
            }
        }
        outcome
    }

    /// What fires now, the worst first and then the oldest.
    pub fn firing(&self) -> Vec<FiringAlert> {
        let mut firing: Vec<_> = self
            .rules
            .iter()
            .flat_map(|watched| watched.places.values())
            .filter_map(place::PlaceState::firing)
            .collect();
        firing.sort_by_key(|alert| {
            (
                std::cmp::Reverse(alert.alert.severity),
                alert.alert.since_ms,
            )
        });
        firing
    }

    /// How each rule is.
    pub fn status(&self, now_ms: u64) -> Vec<RuleStatus> {
        self.rules
            .iter()
            .map(|watched| watched.status(now_ms, &self.zone))
            .collect()
    }
}

impl Watched {
    fn is_silenced(&self, now_ms: u64, zone: &TimeZone) -> bool {
        self.silenced_until_ms.is_some()
            || self
                .rule
                .quiet
                .iter()
                .any(|quiet: &Quiet| quiet.has(now_ms, zone))
    }
}

impl Outcome {
    fn tell(&mut self, at_ms: u64, alert: &FiringAlert, status: Status) {
        let notification = Notification {
            status,
            at_ms,
            alert: alert.clone(),
        };
        self.events.push(notification.into_event());
    }

    fn notify(&mut self, at_ms: u64, alert: &FiringAlert, status: Status, receivers: &[String]) {
        if !receivers.is_empty() {
            let notification = Notification {
                status,
                at_ms,
                alert: alert.clone(),
            };
            self.notifications.push((notification, receivers.to_vec()));
        }
    }
}

#[cfg(test)]
mod test_timeline;
#[cfg(test)]
mod tests;
