//! What a rule of somebody's own says of a GPU or of the machine.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use ts_rs::TS;

use super::{GpuRef, Severity};
use crate::flat;

/// An alert: a rule of the alert file that holds for a GPU or for the machine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS, JsonSchema)]
pub struct Alert {
    /// The name of its rule.
    pub rule: String,
    /// How much it matters, as the rule says.
    pub severity: Severity,
    /// When it began to fire: what the rule watches for had lasted long enough.
    pub since_ms: u64,
    /// What the rule watches for and what it met, in one sentence for people.
    pub text: String,
    /// Whether the rule is silenced now: the alert is listed, and nobody is notified.
    #[serde(default, skip_serializing_if = "is_false")]
    #[ts(as = "Option<bool>", optional)]
    pub silenced: bool,
    /// Whether the text can contain names of processes and notebooks. Users who may not see them
    /// get another text. Left out of JSON where it cannot.
    #[serde(default, skip_serializing_if = "is_false")]
    #[ts(as = "Option<bool>", optional)]
    pub names_processes: bool,
}

/// An alert that fires now, and where.
#[derive(Debug, Clone, PartialEq, Serialize, TS, JsonSchema)]
pub struct FiringAlert {
    /// The GPU; `None` where it concerns the machine.
    pub gpu: Option<GpuRef>,
    /// What.
    #[serde(flatten)]
    #[ts(flatten)]
    pub alert: Alert,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "as serde calls it")]
fn is_false(value: &bool) -> bool {
    !value
}

flat! { FiringAlert { gpu, alert: rest } }
