//! The alert state that is saved across restarts: which alerts are firing, and which receivers were
//! notified.

use std::collections::BTreeMap;

use gpumon_probe::model::FiringAlert;
use serde::{Deserialize, Serialize};

use super::{
    Evaluator, WatchedRule,
    target::{AlertTarget, TargetState},
};
use crate::wording;

/// The maximum number of saved alerts. Firing alerts beyond this limit are sent again after a
/// restart.
const MAX_SAVED_ALERTS: usize = 1000;

/// An alert that is firing, or that ended before all receivers were notified.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SavedAlert {
    /// The description of the rule's check. A rule whose check has changed counts as a different
    /// rule.
    watch: String,
    place: AlertTarget,
    fires: bool,
    alert: FiringAlert,
    /// When each receiver was notified that the alert fires, by receiver name.
    told_ms: BTreeMap<String, u64>,
}

impl SavedAlert {
    /// Returns `true` if both saved alerts are about the same rule and the same target.
    fn is_same_alert(&self, other: &Self) -> bool {
        self.place == other.place
            && self.alert.alert.rule == other.alert.alert.rule
            && self.watch == other.watch
    }

    /// Combines the saved alerts (`before`) with the current ones (`now`). Only notifications that
    /// were certainly delivered are kept. For a receiver that is up to date, these are the
    /// notifications in `now`. For a receiver with waiting or lost notifications, these are the
    /// ones in `before`. Notifications of removed receivers are dropped.
    pub fn merge_saved_alerts(
        before: &[Self],
        now: Vec<Self>,
        is_up_to_date: &BTreeMap<String, bool>,
    ) -> Vec<Self> {
        let keep = |saved: &mut Self, certain: bool| {
            saved
                .told_ms
                .retain(|name, _| is_up_to_date.get(name) == Some(&certain));
        };
        let mut merged = now;
        for saved in &mut merged {
            keep(saved, true);
        }
        for old in before {
            let mut old = Self {
                fires: false,
                ..old.clone()
            };
            keep(&mut old, false);
            if old.told_ms.is_empty() {
                continue;
            }
            match merged.iter_mut().find(|saved| saved.is_same_alert(&old)) {
                Some(saved) => saved.told_ms.extend(old.told_ms),
                None => merged.push(old),
            }
        }
        merged.retain(|saved| saved.fires || !saved.told_ms.is_empty());
        merged.truncate(MAX_SAVED_ALERTS);
        merged
    }

    /// Returns `true` if both saved alerts are equal apart from the alert's text, which changes
    /// with every reading.
    pub fn equals_except_text(&self, other: &Self) -> bool {
        self.is_same_alert(other) && self.fires == other.fires && self.told_ms == other.told_ms
    }
}

impl Evaluator {
    /// Returns the alerts to be saved across a restart.
    pub fn saved_alerts(&self) -> Vec<SavedAlert> {
        let of_rule = |watched: &WatchedRule| -> Vec<SavedAlert> {
            let mut watch = None;
            let saved = |(place, state): (&AlertTarget, &TargetState)| {
                let (alert, told) = state.notified_alert()?;
                Some(SavedAlert {
                    watch: watch
                        .get_or_insert_with(|| wording::describe_check(&watched.rule.check))
                        .clone(),
                    place: place.clone(),
                    fires: state.is_firing(),
                    alert: alert.clone(),
                    told_ms: told
                        .map(|(name, told_ms)| (name.to_owned(), told_ms))
                        .collect(),
                })
            };
            watched.places.iter().filter_map(saved).collect()
        };
        self.rules.iter().flat_map(of_rule).collect()
    }

    /// Restores saved alerts. Must be called before the first [`Self::evaluate_rules`]. Firing
    /// alerts continue until a sample shows that the rule no longer matches; alerts of removed
    /// rules are resolved.
    pub fn restore(&mut self, saved: Vec<SavedAlert>) {
        for SavedAlert {
            watch,
            place,
            fires,
            alert,
            told_ms,
        } in saved
        {
            let state = TargetState::from_saved(&alert, fires, told_ms);
            let is_of = |watched: &&mut WatchedRule| {
                watched.rule.name == alert.alert.rule
                    && wording::describe_check(&watched.rule.check) == watch
            };
            match self.rules.iter_mut().find(is_of) {
                Some(watched) => {
                    let state = state.resume(
                        &watched.rule.check,
                        self.clock.moment_at(alert.alert.since_ms),
                    );
                    watched.places.entry(place).or_insert(state);
                }
                None => self.dropped.push(state),
            }
        }
    }
}
