//! A recording in the place of what is read now.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use ts_rs::TS;

/// How a recording is played. What is shown then is as it was at the time of the newest sample.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, TS, JsonSchema)]
pub struct Playback {
    /// When its first sample was taken.
    pub from_ms: u64,
    /// When its last sample was taken.
    pub to_ms: u64,
    /// In times of the real speed.
    pub speed: f64,
    /// Whether it stands still because somebody wanted that.
    pub paused: bool,
    /// Whether its last sample is shown.
    pub ended: bool,
}
