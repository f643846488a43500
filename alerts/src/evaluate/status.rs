//! The status of rules, for display and as JSON.

use gpumon_probe::model::{GpuRef, Severity};
use jiff::tz::TimeZone;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    WatchedRule,
    place::{AlertTarget, TargetState},
};
use crate::describe;

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

impl WatchedRule {
    pub(super) fn status(&self, now_ms: u64, zone: &TimeZone) -> RuleStatus {
        let Self {
            rule,
            places,
            silenced_until_ms,
        } = self;
        let names_processes = rule.check.names_processes();
        let place = |(place, state): (&AlertTarget, &TargetState)| {
            if let Some(firing) = state.firing_alert() {
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
            let (since, met) = state.pending_match()?;
            let gpu = match place {
                AlertTarget::Gpu(index) => Some(GpuRef {
                    index: *index,
                    uuid: None,
                }),
                AlertTarget::Machine | AlertTarget::Missing(_) => None,
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
            text: describe::describe_check(&rule.check),
            silenced: self.is_silenced(now_ms, zone),
            silenced_until_ms: *silenced_until_ms,
            active: places.iter().filter_map(place).collect(),
        }
    }
}
