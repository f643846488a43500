//! The severity of conditions and alerts.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use ts_rs::TS;

/// The severity of a condition or alert.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, TS, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// Information that may be useful to know.
    Notice,
    /// Work is slower, or may soon be impossible.
    Warning,
    /// Results may be wrong, or the GPU may soon be unusable.
    Critical,
}

impl Severity {
    /// Returns the severity as a number for metrics and fleets: 1 for a notice, 2 for a warning, 3
    /// if critical.
    pub fn rank(self) -> u8 {
        1 + self as u8
    }
}
