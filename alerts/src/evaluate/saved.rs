//! Alerts that are saved across restarts of the program: which alerts fire, and which receivers
//! were notified.

use std::collections::BTreeMap;

use gpumon_probe::model::FiringAlert;
use serde::{Deserialize, Serialize};

use super::{
    Evaluator, Watched,
    place::{Place, PlaceState},
};
use crate::describe;

/// The maximum number of saved alerts. All others are sent again after a restart if they fire.
const MOST: usize = 1000;

/// An alert that fires, or that has ended without all receivers having been notified.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SavedAlert {
    /// The description of the rule's check. A rule with another description counts as another rule.
    watch: String,
    place: Place,
    fires: bool,
    alert: FiringAlert,
    /// When each receiver was notified that the alert fires, by name.
    told_ms: BTreeMap<String, u64>,
}

impl SavedAlert {
    /// Returns `true` if both belong to the same rule and target.
    fn is_same(&self, other: &Self) -> bool {
        self.place == other.place
            && self.alert.alert.rule == other.alert.alert.rule
            && self.watch == other.watch
    }

    /// Updates saved alerts, and keeps only notifications that certainly arrived. If a receiver is
    /// up to date, these are the notifications in `now`; if some of its notifications wait or were
    /// lost, these are the ones in `before`. Receivers that were removed are forgotten.
    pub fn merge(
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
            match merged.iter_mut().find(|saved| saved.is_same(&old)) {
                Some(saved) => saved.told_ms.extend(old.told_ms),
                None => merged.push(old),
            }
        }
        merged.retain(|saved| saved.fires || !saved.told_ms.is_empty());
        merged.truncate(MOST);
        merged
    }

    /// Returns `true` if both are equal except for the alert itself, whose text changes with every
    /// reading.
    pub fn is_like(&self, other: &Self) -> bool {
        self.is_same(other) && self.fires == other.fires && self.told_ms == other.told_ms
    }
}

impl Evaluator {
    /// Returns the alerts to be saved across a restart.
    pub fn saved(&self) -> Vec<SavedAlert> {
        let of_rule = |watched: &Watched| -> Vec<SavedAlert> {
            let mut watch = None;
            let saved = |(place, state): (&Place, &PlaceState)| {
                let (alert, told) = state.told()?;
                Some(SavedAlert {
                    watch: watch
                        .get_or_insert_with(|| describe::watch(&watched.rule.check))
                        .clone(),
                    place: place.clone(),
                    fires: state.lasts(),
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

    /// Restores saved alerts, before the first [`Self::update`]. Alerts that fired continue until
    /// the rule is seen not to match; alerts of removed rules are resolved.
    pub fn restore(&mut self, saved: Vec<SavedAlert>) {
        for SavedAlert {
            watch,
            place,
            fires,
            alert,
            told_ms,
        } in saved
        {
            let state = PlaceState::earlier(&alert, fires, told_ms);
            let is_of = |watched: &&mut Watched| {
                watched.rule.name == alert.alert.rule
                    && describe::watch(&watched.rule.check) == watch
            };
            match self.rules.iter_mut().find(is_of) {
                Some(watched) => {
                    let state =
                        state.resumed(&watched.rule.check, self.clock.at(alert.alert.since_ms));
                    watched.places.entry(place).or_insert(state);
                }
                None => self.dropped.push(state),
            }
        }
    }
}
