//! Alerts of the user's own rules.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use ts_rs::TS;

use super::{GpuRef, Severity};
use crate::flat;

/// An alert: a rule of the alert file that matches a GPU or the machine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS, JsonSchema)]
pub struct Alert {
    /// The name of the alert's rule.
    pub rule: String,
    /// The severity that the rule specifies.
    pub severity: Severity,
    /// The time at which the alert started to fire, after the rule had matched for its minimum
    /// duration.
    pub since_ms: u64,
    /// The condition of the rule and the observed value, as a sentence.
    pub text: String,
    /// Whether the rule is silenced now. A silenced alert is listed, but nobody is notified.
    #[serde(default, skip_serializing_if = "is_false")]
    #[ts(as = "Option<bool>", optional)]
    pub silenced: bool,
    /// Whether the text can contain names of processes and notebooks. Users who may not see these
    /// names get another text. Omitted if `false`.
    #[serde(default, skip_serializing_if = "is_false")]
    #[ts(as = "Option<bool>", optional)]
    pub names_processes: bool,
}

/// An alert that fires now, with its GPU.
#[derive(Debug, Clone, PartialEq, Serialize, TS, JsonSchema)]
pub struct FiringAlert {
    /// The GPU, or `null` for an alert about the machine.
    pub gpu: Option<GpuRef>,
    /// The alert that fires.
    #[serde(flatten)]
    #[ts(flatten)]
    pub alert: Alert,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
fn is_false(value: &bool) -> bool {
    !value
}

flat! { FiringAlert { gpu, alert: rest } }
