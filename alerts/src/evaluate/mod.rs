//! Evaluation of rules: a state machine for each rule and GPU (inactive, pending, firing, resolved)
//! turns samples into alerts.
//!
//! [`observe`] compares a sample with a rule, [`target`] keeps the state of a rule for one GPU and
//! computes rates of change, [`cause_window`] computes the shares of the causes that limited a GPU,
//! and [`saved`] keeps alerts across restarts. Delays are handled as for the conditions of GPUs:
//! time without observations, such as a pause of the collector, does not count. This module reads
//! no clock: the same samples always produce the same alerts.

mod cause_window;
mod observe;
mod saved;
mod target;

use std::collections::{BTreeMap, BTreeSet};

use gpumon_probe::{
    derive::{Clock, ConditionSettings},
    model::{Event, FiringAlert, GpuRef, Inventory, Sample, Severity},
};
use jiff::tz::TimeZone;
use observe::TimeSinceStart;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use target::{AlertTarget, TargetState};

use crate::{
    notify::Notification,
    rules::{AlertRules, Rule},
    wording::{self, AlertStatus},
};

pub use saved::SavedAlert;

/// The data for one evaluation of all rules.
#[derive(Debug, Clone, Copy)]
pub struct EvaluationInput<'a> {
    /// The newest sample; `None` if there is none, or if it is too old to show the current state.
    pub sample: Option<&'a Sample>,
    /// The inventory; `None` until it is known.
    pub inventory: Option<&'a Inventory>,
    /// Whether the collector is expected to have readings. During a pause and before the first
    /// sample, no readings are expected, and delays do not advance.
    pub is_watched: bool,
    /// When the collector was started. A different value means that the collector was restarted and
    /// needs time to detect conditions again.
    pub started_ms: u64,
}

/// The events and notifications that one update produces.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct EvaluationOutcome {
    /// Events for all clients.
    pub events: Vec<Event>,
    /// Notifications, each with the names of its receivers.
    pub notifications: Vec<(Notification, Vec<String>)>,
}

/// A rule with its current status.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RuleStatus {
    /// Name of the rule in the alert file.
    pub name: String,
    /// Severity of the rule's alerts.
    pub severity: Severity,
    /// Description of the rule, such as `Temperature above 85 °C for 2 min`.
    pub text: String,
    /// Whether the rule's notifications are silenced now.
    pub silenced: bool,
    /// End of the silence that was set with a command, in milliseconds since 1970.
    pub silenced_until_ms: Option<u64>,
    /// GPUs, or the machine, for which the rule is pending or firing.
    pub active: Vec<PlaceStatus>,
}

/// State of a rule for one GPU, or for the machine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PlaceStatus {
    /// The GPU; `null` for the machine.
    pub gpu: Option<GpuRef>,
    /// State of the rule for this GPU.
    pub state: RuleState,
    /// When the rule began to match, in milliseconds since 1970.
    pub since_ms: u64,
    /// Description of the match, such as `Temperature 87 °C, above 85 °C`.
    pub text: String,
    /// Whether the text can contain names of processes and notebooks.
    #[serde(skip)]
    pub names_processes: bool,
}

/// State of a rule that matches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RuleState {
    /// The rule matches, but has not yet matched for long enough to fire.
    Pending,
    /// The rule has matched for long enough and is firing.
    Firing,
}

/// All rules with their states.
#[derive(Debug)]
pub struct Evaluator {
    clock: Clock,
    zone: TimeZone,
    conditions: ConditionSettings,
    since_start: TimeSinceStart,
    rules: Vec<WatchedRule>,
    /// States of rules that were removed. The next [`Self::evaluate_rules`] ends their alerts.
    dropped: Vec<TargetState>,
}

/// A rule and its state for each target.
#[derive(Debug)]
struct WatchedRule {
    rule: Rule,
    places: BTreeMap<AlertTarget, TargetState>,
    /// The end of the silence that was set with a command, if any. Silences in the alert file are
    /// not included.
    silenced_until_ms: Option<u64>,
}

impl Evaluator {
    /// Creates an evaluator in which no rule has a state yet. `zone` is the time zone for silences
    /// by hour of the day, and `conditions` are the collector's settings for detecting conditions.
    pub fn new(rules: &AlertRules, zone: TimeZone, conditions: ConditionSettings) -> Self {
        let mut evaluator = Self {
            clock: Clock::default(),
            zone,
            conditions,
            since_start: TimeSinceStart::default(),
            rules: Vec::new(),
            dropped: Vec::new(),
        };
        evaluator.replace_rules(rules, &BTreeSet::new());
        evaluator
    }

    /// Replaces the rules. A rule keeps its state if its name and check are unchanged. The next
    /// [`Self::evaluate_rules`] resolves the alerts of all other old rules. The receivers in
    /// `new_receivers` are notified of every firing alert.
    pub fn replace_rules(&mut self, rules: &AlertRules, new_receivers: &BTreeSet<String>) {
        let mut known = std::mem::take(&mut self.rules);
        for rule in &rules.rules {
            let same = known
                .iter()
                .position(|old| old.rule.name == rule.name && old.rule.check == rule.check);
            let state = same.map(|at| known.swap_remove(at));
            self.rules.push(match state {
                Some(old) => WatchedRule {
                    rule: rule.clone(),
                    ..old
                },
                None => WatchedRule {
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
            .for_each(|state| state.forget_notifications_to(new_receivers));
    }

    /// Silences a rule until the given time, or ends its silence if `until_ms` is `None`. Returns
    /// `false` if no rule has this name.
    pub fn silence_rule(&mut self, rule: &str, until_ms: Option<u64>) -> bool {
        let found = self
            .rules
            .iter_mut()
            .find(|watched| watched.rule.name == rule);
        found
            .map(|watched| watched.silenced_until_ms = until_ms)
            .is_some()
    }

    /// Updates all rules with the newest data.
    pub fn evaluate_rules(
        &mut self,
        readings: &EvaluationInput<'_>,
        now_ms: u64,
    ) -> EvaluationOutcome {
        let mut outcome = EvaluationOutcome::default();
        let now = self.clock.advance(now_ms, readings.is_watched);
        self.since_start.add_elapsed_time(readings, now);
        for mut state in std::mem::take(&mut self.dropped) {
            state.end_alert(now_ms, &mut outcome);
        }
        for watched in &mut self.rules {
            watched.silenced_until_ms = watched
                .silenced_until_ms
                .filter(|until_ms| *until_ms > now_ms);
            let is_silenced = watched.is_silenced(now_ms, &self.zone);
            let WatchedRule { rule, places, .. } = watched;
            if readings.is_watched {
                let there: BTreeSet<AlertTarget> =
                    observe::list_targets(&rule.check, readings).collect();
                // No GPU counts as removed while the inventory is unknown.
                let inventory = readings.inventory;
                let is_over = |place: &AlertTarget, state: &mut TargetState| {
                    inventory.is_some()
                        && (!there.contains(place)
                            || state.belongs_to_another_gpu(place, inventory))
                };
                for (_, mut state) in places.extract_if(.., is_over) {
                    state.end_alert(now_ms, &mut outcome);
                }
                for place in there {
                    let state = places
                        .entry(place.clone())
                        .or_insert_with(|| TargetState::new(&rule.check));
                    if self.since_start.may_condition_be_undetected(
                        &rule.check,
                        &place,
                        readings,
                        &self.conditions,
                    ) {
                        continue;
                    }
                    let seen = observe::observe_target(&rule.check, &place, readings, state);
                    state.apply_observation(rule, &place, readings, seen, now, &mut outcome);
                }
            }
            for state in places.values_mut() {
                state.notify_receivers(rule, is_silenced, now_ms, &mut outcome);
            }
        }
        outcome
    }

    /// Returns the firing alerts, the most severe first, then the oldest.
    pub fn firing_alerts(&self) -> Vec<FiringAlert> {
        let mut firing: Vec<_> = self
            .rules
            .iter()
            .flat_map(|watched| watched.places.values())
            .filter_map(TargetState::firing_alert)
            .collect();
        firing.sort_by_key(|alert| {
            (
                std::cmp::Reverse(alert.alert.severity),
                alert.alert.since_ms,
            )
        });
        firing
    }

    pub fn status(&self, now_ms: u64) -> Vec<RuleStatus> {
        self.rules
            .iter()
            .map(|watched| watched.status(now_ms, &self.zone))
            .collect()
    }
}

impl WatchedRule {
    fn is_silenced(&self, now_ms: u64, zone: &TimeZone) -> bool {
        self.silenced_until_ms.is_some()
            || self
                .rule
                .quiet
                .iter()
                .any(|quiet| quiet.contains(now_ms, zone))
    }

    fn status(&self, now_ms: u64, zone: &TimeZone) -> RuleStatus {
        let Self {
            rule,
            places,
            silenced_until_ms,
        } = self;
        let names_processes = rule.check.may_name_processes();
        let place = |(place, state): (&AlertTarget, &TargetState)| {
            let firing = state.firing_alert();
            let (gpu, state, since_ms, text) = if let Some(FiringAlert { gpu, alert }) = firing {
                (gpu, RuleState::Firing, alert.since_ms, alert.text)
            } else {
                let (since, text) = state.pending_match()?;
                let gpu = target::gpu_ref(place, None);
                (gpu, RuleState::Pending, since.wall_ms, text.clone())
            };
            Some(PlaceStatus {
                gpu,
                state,
                since_ms,
                text,
                names_processes,
            })
        };
        RuleStatus {
            name: rule.name.clone(),
            severity: rule.severity,
            text: wording::describe_check(&rule.check),
            silenced: self.is_silenced(now_ms, zone),
            silenced_until_ms: *silenced_until_ms,
            active: places.iter().filter_map(place).collect(),
        }
    }
}

impl EvaluationOutcome {
    fn add_event(&mut self, at_ms: u64, alert: &FiringAlert, status: AlertStatus) {
        self.events
            .push(Notification::new(status, at_ms, alert).into_event());
    }

    fn add_notification(
        &mut self,
        at_ms: u64,
        alert: &FiringAlert,
        status: AlertStatus,
        receivers: &[String],
    ) {
        if !receivers.is_empty() {
            let notification = Notification::new(status, at_ms, alert);
            self.notifications.push((notification, receivers.to_vec()));
        }
    }
}

#[cfg(test)]
mod test_timeline;
#[cfg(test)]
mod tests;
