//! What outlives a restart of the program: which alerts fire, and who was told.

use std::collections::BTreeMap;

use gpumon_probe::model::FiringAlert;
use serde::{Deserialize, Serialize};

use super::{
    Evaluator, Watched,
    place::{Place, PlaceState},
};
use crate::describe;

/// So many are saved; beyond, what fires is told again after a restart.
const MOST: usize = 1000;

/// An alert that fires, or of whose end somebody is not told yet.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SavedAlert {
    /// What its rule watches for, in a sentence: one that watches for something else is another.
    watch: String,
    place: Place,
    fires: bool,
    alert: FiringAlert,
    /// When receivers were told that it fires, by their names.
    told_ms: BTreeMap<String, u64>,
}

impl SavedAlert {
    /// Whether both are of the same rule at the same place.
    fn is_same(&self, other: &Self) -> bool {
        self.place == other.place
            && self.alert.alert.rule == other.alert.alert.rule
            && self.watch == other.watch
    }

    /// Who has been told, as far as that is certain: a receiver that is up to date, of what it was
    /// told by now; one that waits or was not reached, of what it had been told when it was.
    /// Receivers that are no more are forgotten.
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

    /// The same but for the text, which moves.
    pub fn is_like(&self, other: &Self) -> bool {
        self.is_same(other) && self.fires == other.fires && self.told_ms == other.told_ms
    }
}

impl Evaluator {
    /// What is to outlive a restart.
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

    /// Takes up what was saved, before the first [`Self::update`]. What fired goes on until it is
    /// seen that it does no more; that of rules that are gone is resolved.
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
