//! How much something matters.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use ts_rs::TS;

/// How much a condition matters.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, TS, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// Worth knowing.
    Notice,
    /// Work runs slower, or soon may not run.
    Warning,
    /// Results may be wrong, or the GPU is about to be unusable.
    Critical,
}

impl Severity {
    /// Returns 1 for a notice, 2 for a warning and 3 if critical, for metrics and fleets.
    pub fn rank(self) -> u8 {
        1 + self as u8
    }
}
