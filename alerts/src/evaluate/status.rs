//! How a rule is, for people and programs.

use gpumon_probe::model::{GpuRef, Severity};
use jiff::tz::TimeZone;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    Watched,
    place::{Place, PlaceState},
};
use crate::describe;

/// A rule, and how it is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RuleStatus {
    /// Its name.
    pub name: String,
    /// How much its alerts matter.
    pub severity: Severity,
    /// What it watches for, in a sentence.
    pub text: String,
    /// Whether nobody is notified now.
    pub silenced: bool,
    /// Until when it was silenced by command.
    pub silenced_until_ms: Option<u64>,
    /// Where it fires or soon would.
    pub active: Vec<PlaceStatus>,
}

/// Where a rule is not inactive.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PlaceStatus {
    /// The GPU; `None` for the machine.
    pub gpu: Option<GpuRef>,
    /// How it is there.
    pub state: RuleState,
    /// Since when what it watches for is so.
    pub since_ms: u64,
    /// What was met, in a sentence.
    pub text: String,
    /// Whether the text can contain names of processes and notebooks.
    #[serde(skip)]
    pub names_processes: bool,
}

/// States of a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RuleState {
    /// What it watches for is so, not yet for long enough.
    Pending,
    /// It has been for long enough.
    Firing,
}

impl Watched {
    pub(super) fn status(&self, now_ms: u64, zone: &TimeZone) -> RuleStatus {
        let Self {
            rule,
            places,
            silenced_until_ms,
        } = self;
        let names_processes = rule.check.names_processes();
        let place = |(place, state): (&Place, &PlaceState)| {
            if let Some(firing) = state.firing() {
                let state = RuleState::Firing;
                let alert = firing.alert;
                let since_ms = alert.since_ms;
                return Some(PlaceStatus {
                    gpu: firing.gpu,
                    state,
                    since_ms,
                    text: alert.text,
                    names_processes,
                });
            }
            let (since, met) = state.pending()?;
            let gpu = match place {
                Place::Gpu(index) => Some(GpuRef {
                    index: *index,
                    uuid: None,
                }),
                Place::Machine | Place::Missing(_) => None,
            };
            let (state, text) = (RuleState::Pending, met.clone());
            Some(PlaceStatus {
                gpu,
                state,
                since_ms: since.wall_ms,
                text,
                names_processes,
            })
        };
        RuleStatus {
            name: rule.name.clone(),
            severity: rule.severity,
            text: describe::watch(&rule.check),
            silenced: self.is_silenced(now_ms, zone),
            silenced_until_ms: *silenced_until_ms,
            active: places.iter().filter_map(place).collect(),
        }
    }
}
