//! The state of a rule for one target, and the time window in which its rate of change is measured.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use gpumon_probe::{
    derive::{Hysteresis, Moment, Observation},
    model::{Alert, FiringAlert, GpuRef, Inventory, fields::Kind},
};
use serde::{Deserialize, Serialize};

use super::{EvaluationInput, EvaluationOutcome, cause_window::CauseWindow};
use crate::{
    rules::{Rule, RuleCheck, Watch, WatchedField, field_of},
    wording::AlertStatus,
};

/// A target that a rule is evaluated for.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum AlertTarget {
    /// The whole machine, for rules about the host and while no GPU is known.
    Machine,
    /// The GPU with this index.
    Gpu(u32),
    /// A missing GPU, identified by its name in the rule. The name is not an index.
    Missing(String),
}

#[derive(Debug)]
pub(super) struct TargetState {
    /// Applies the rule's delays, and stores the description of the match. If the match began
    /// before the program started, the description is empty.
    hysteresis: Hysteresis<String>,
    /// The values in the time window, for rules about a rate of change.
    pub(super) window: Option<RateWindow>,
    /// The shares of the causes, for rules with `limited_by` and `for`.
    pub(super) causes: Option<CauseWindow>,
    firing: Option<FiringAlert>,
    /// The firing alert that each receiver was last notified of, and the time of that notification.
    told: BTreeMap<String, (FiringAlert, u64)>,
}

impl TargetState {
    pub(super) fn new(check: &RuleCheck) -> Self {
        let window = match &check.watch {
            Watch::Value {
                rate: Some(rate),
                subject,
                ..
            } => Some(RateWindow::new(rate.over_ms, *subject)),
            _ => None,
        };
        let causes = match check.watch {
            Watch::LimitedBy(cause) if check.for_ms > 0 => {
                Some(CauseWindow::new(check.for_ms, cause))
            }
            _ => None,
        };
        // The shares are known only after the time `for`, so the rule needs no further delay.
        let begin_after_ms = if causes.is_some() { 0 } else { check.for_ms };
        Self {
            hysteresis: Hysteresis::new(begin_after_ms, check.clear_for_ms),
            window,
            causes,
            firing: None,
            told: BTreeMap::new(),
        }
    }

    /// Restores the state that was saved before a restart. `fires` is whether the alert was still
    /// firing, and `told_ms` is when each receiver was notified.
    pub(super) fn from_saved(
        alert: &FiringAlert,
        fires: bool,
        told_ms: BTreeMap<String, u64>,
    ) -> Self {
        Self {
            hysteresis: Hysteresis::new(0, 0),
            window: None,
            causes: None,
            firing: fires.then(|| alert.clone()),
            told: told_ms
                .into_iter()
                .map(|(name, told_ms)| (name, (alert.clone(), told_ms)))
                .collect(),
        }
    }

    /// Continues a restored state with the rule's `check`. `since` is the time at which the alert
    /// began to fire, if it is firing.
    pub(super) fn resume(self, check: &RuleCheck, since: Moment) -> Self {
        let mut state = Self {
            firing: self.firing,
            told: self.told,
            ..Self::new(check)
        };
        if let Some(firing) = &mut state.firing {
            // Earlier versions did not store this flag.
            firing.alert.names_processes = check.may_name_processes();
            state.hysteresis.resume(since, String::new());
        }
        state
    }

    /// Returns the alert if it is firing, or if some receivers have not been notified of its end
    /// yet; otherwise `None`. Also returns the time at which each receiver was notified.
    pub(super) fn notified_alert(
        &self,
    ) -> Option<(&FiringAlert, impl Iterator<Item = (&str, u64)>)> {
        let newest = || {
            self.told
                .values()
                .max_by_key(|(_, told_ms)| *told_ms)
                .map(|(alert, _)| alert)
        };
        let notified = self
            .told
            .iter()
            .map(|(name, (_, told_ms))| (name.as_str(), *told_ms));
        Some((self.firing.as_ref().or_else(newest)?, notified))
    }

    /// Returns `true` if the GPU with the target's index is not the GPU that the alert is about.
    pub(super) fn belongs_to_another_gpu(
        &self,
        place: &AlertTarget,
        inventory: Option<&Inventory>,
    ) -> bool {
        let uuid = |gpu: Option<GpuRef>| gpu.and_then(|gpu| gpu.uuid);
        let known = self
            .notified_alert()
            .and_then(|(alert, _)| uuid(alert.gpu.clone()));
        known
            .zip(uuid(gpu_ref(place, inventory)))
            .is_some_and(|(known, now)| known != now)
    }

    /// Returns `true` if the rule fires.
    pub(super) fn is_firing(&self) -> bool {
        self.hysteresis.is_ongoing()
    }

    /// Returns the time at which a pending rule began to match, with the description of the match;
    /// `None` if the rule is not pending.
    pub(super) fn pending_match(&self) -> Option<(Moment, &String)> {
        self.hysteresis.pending_start_and_value()
    }

    pub(super) fn firing_alert(&self) -> Option<FiringAlert> {
        self.firing.clone()
    }

    /// Updates the state with an observation, and adds the resulting events to the outcome.
    pub(super) fn apply_observation(
        &mut self,
        rule: &Rule,
        place: &AlertTarget,
        readings: &EvaluationInput<'_>,
        seen: Observation<String>,
        now: Moment,
        outcome: &mut EvaluationOutcome,
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
                        text: alert_text(rule, place, met),
                        silenced: false,
                        names_processes: rule.check.may_name_processes(),
                    },
                };
                outcome.add_event(now.wall_ms, &alert, AlertStatus::Firing);
                self.firing = Some(alert);
            }
            (Some((_, met)), Some(firing)) => {
                // The text describes the current match. The severity is updated because a reload
                // may have changed the rule.
                if !met.is_empty() {
                    firing.alert.text = alert_text(rule, place, met);
                }
                firing.alert.severity = rule.severity;
            }
            (None, Some(_)) => {
                if let Some(firing) = self.firing.take() {
                    outcome.add_event(now.wall_ms, &firing, AlertStatus::Resolved);
                }
            }
            (None, None) => {}
        }
    }

    /// Adds notifications to the outcome for the receivers that have not been notified yet, unless
    /// the rule is silenced.
    pub(super) fn notify_receivers(
        &mut self,
        rule: &Rule,
        is_silenced: bool,
        now_ms: u64,
        outcome: &mut EvaluationOutcome,
    ) {
        if let Some(firing) = &mut self.firing {
            firing.alert.silenced = is_silenced;
        }
        if is_silenced {
            return;
        }
        let Some(firing) = &self.firing else {
            self.notify_resolved(now_ms, outcome);
            return;
        };
        let is_due = |told_ms: u64| {
            // If the clock was set back, the difference is negative. The absolute difference is
            // used, so that the repeated notification is not delayed.
            rule.repeat_ms
                .is_some_and(|repeat_ms| now_ms.abs_diff(told_ms) >= repeat_ms)
        };
        let is_notified = |name: &&String| {
            self.told
                .get(*name)
                .is_some_and(|(_, told_ms)| !is_due(*told_ms))
        };
        let due: Vec<String> = rule
            .notify
            .iter()
            .filter(|name| !is_notified(name))
            .cloned()
            .collect();
        outcome.add_notification(now_ms, firing, AlertStatus::Firing, &due);
        self.told
            .extend(due.into_iter().map(|name| (name, (firing.clone(), now_ms))));
    }

    /// Forgets that these receivers were notified. They are therefore notified again.
    pub(super) fn forget_notifications_to(&mut self, receivers: &BTreeSet<String>) {
        self.told.retain(|name, _| !receivers.contains(name));
    }

    /// Ends the alert because its rule or target was removed.
    pub(super) fn end_alert(&mut self, now_ms: u64, outcome: &mut EvaluationOutcome) {
        if let Some(firing) = self.firing.take() {
            outcome.add_event(now_ms, &firing, AlertStatus::Resolved);
        }
        self.notify_resolved(now_ms, outcome);
    }

    /// Adds a notification that the alert is resolved, for every receiver that was notified of the
    /// alert.
    fn notify_resolved(&mut self, now_ms: u64, outcome: &mut EvaluationOutcome) {
        let notified = std::mem::take(&mut self.told);
        let receivers: Vec<String> = notified.keys().cloned().collect();
        if let Some((alert, _)) = notified.into_values().max_by_key(|(_, told_ms)| *told_ms) {
            outcome.add_notification(now_ms, &alert, AlertStatus::Resolved, &receivers);
        }
    }
}

fn alert_text(rule: &Rule, place: &AlertTarget, met: &str) -> String {
    let text = match place {
        AlertTarget::Missing(uuid) => format!("{uuid}: {met}"),
        AlertTarget::Machine | AlertTarget::Gpu(_) => met.to_owned(),
    };
    match &rule.message {
        Some(message) => format!("{text}. {message}"),
        None => text,
    }
}

pub(super) fn gpu_ref(place: &AlertTarget, inventory: Option<&Inventory>) -> Option<GpuRef> {
    let AlertTarget::Gpu(index) = *place else {
        return None;
    };
    let gpu = inventory.and_then(|inventory| inventory.gpus.iter().find(|gpu| gpu.index == index));
    Some(GpuRef {
        index,
        uuid: gpu.and_then(|gpu| gpu.uuid.clone()),
    })
}

/// The approximate maximum number of values in a window: more values add no information.
const MAX_WINDOW_VALUES: u64 = 120;

/// Adds a value to a window of `over_ms` milliseconds, and limits the number of values. The new
/// value replaces the last stored value if the stored value before the last one is at most
/// `over_ms / MAX_WINDOW_VALUES` older than the new value.
pub(super) fn push_value<T>(values: &mut VecDeque<(u64, T)>, at_ms: u64, value: T, over_ms: u64) {
    let close_ms = over_ms / MAX_WINDOW_VALUES;
    if values.len() >= 2 && at_ms - values[values.len() - 2].0 <= close_ms {
        values.pop_back();
    }
    values.push_back((at_ms, value));
}

/// A field's values in a time window, oldest first, from which its rate of change is computed.
#[derive(Debug)]
pub(super) struct RateWindow {
    over_ms: u64,
    is_counter: bool,
    values: VecDeque<(u64, f64)>,
}

impl RateWindow {
    pub(super) fn new(over_ms: u64, subject: WatchedField) -> Self {
        Self {
            over_ms,
            is_counter: field_of!(subject, kind) == Kind::Counter,
            values: VecDeque::new(),
        }
    }

    /// Adds a sample's value. Ignores a sample that was already added, and clears the window if the
    /// clock was set back.
    pub(super) fn push(&mut self, at_ms: Option<u64>, value: Option<f64>) {
        let Some(at_ms) = at_ms else { return };
        let newest_ms = self.values.back().map(|(newest_ms, _)| *newest_ms);
        if newest_ms.is_some_and(|newest_ms| at_ms < newest_ms) {
            self.values.clear();
        }
        self.values
            .retain(|(known_ms, _)| at_ms - known_ms <= self.over_ms);
        let Some(value) = value.filter(|_| newest_ms != Some(at_ms)) else {
            return;
        };
        push_value(&mut self.values, at_ms, value, self.over_ms);
    }

    /// Returns the change per second; `None` if the values cover less than half of the window.
    ///
    /// The calculation is the same as in Prometheus: for a gauge, the slope of a regression line
    /// (`deriv`); for a counter, its growth, where a decrease counts as a restart from 0 (`rate`).
    pub(super) fn rate_per_second(&self) -> Option<f64> {
        let (first, last) = (self.values.front()?, self.values.back()?);
        let known_ms = last.0 - first.0;
        if known_ms == 0 || known_ms * 2 < self.over_ms {
            return None;
        }
        if self.is_counter {
            let pairs = self.values.iter().zip(self.values.iter().skip(1));
            let growth: f64 = pairs
                .map(|((_, a), (_, b))| if b < a { *b } else { b - a })
                .sum();
            return Some(growth / (known_ms as f64 / 1000.0));
        }
        let count = self.values.len() as f64;
        let points = self
            .values
            .iter()
            .map(|(at_ms, value)| ((at_ms - first.0) as f64 / 1000.0, value - first.1));
        let (mut x, mut y, mut xy, mut xx) = (0.0, 0.0, 0.0, 0.0);
        for (at, value) in points {
            x += at;
            y += value;
            xy += at * value;
            xx += at * at;
        }
        Some((xy - x * y / count) / (xx - x * x / count))
    }
}

#[cfg(test)]
mod tests {
    use gpumon_probe::model::fields::GPU_FIELDS;

    use super::*;

    fn create_window(id: &str, over_ms: u64) -> RateWindow {
        RateWindow::new(
            over_ms,
            WatchedField::Gpu(GPU_FIELDS.iter().find(|field| field.id == id).unwrap()),
        )
    }

    #[test]
    fn gauge_rate_is_slope_of_noisy_values() {
        let mut window = create_window("temperature.gpu_celsius", 60_000);
        for second in 0..=29_u64 {
            window.push(Some(second * 1000), Some(40.0 + 0.5 * second as f64));
            assert_eq!(window.rate_per_second(), None, "{second}");
        }
        for second in 30..200_u64 {
            let noise = if second % 2 == 0 { 1.0 } else { -1.0 };
            window.push(
                Some(second * 1000),
                Some(40.0 + 0.5 * second as f64 + noise),
            );
            assert!(
                (window.rate_per_second().unwrap() - 0.5).abs() < 0.05,
                "{second}: {:?}",
                window.rate_per_second()
            );
        }
    }

    #[test]
    fn rate_is_unaffected_by_counter_reset() {
        let mut window = create_window("power.energy_joules_total", 10_000);
        for second in 0..30_u64 {
            let joules = if second < 20 {
                100 * second
            } else {
                100 * (second - 20)
            };
            window.push(Some(second * 1000), Some(joules as f64));
        }
        assert!(
            (window.rate_per_second().unwrap() - 90.0).abs() < 11.0,
            "{:?}",
            window.rate_per_second()
        );
    }

    #[test]
    fn rate_window_is_bounded_and_restarts_after_gap() {
        let mut window = create_window("power.draw_watts", 60_000);
        for tenth in 0..2000_u64 {
            window.push(Some(tenth * 100), Some(tenth as f64));
            window.push(Some(tenth * 100), Some(-1.0));
        }
        assert!(window.values.len() <= 122, "{}", window.values.len());
        assert!(
            (window.rate_per_second().unwrap() - 10.0).abs() < 1e-6,
            "{:?}",
            window.rate_per_second()
        );
        assert_eq!(window.values.back(), Some(&(199_900, 1999.0)));
        window.push(Some(500_000), Some(1.0));
        assert_eq!((window.values.len(), window.rate_per_second()), (1, None));
        window.push(Some(400_000), Some(1.0));
        assert_eq!(window.values.len(), 1);
    }
}
