//! The playback of a recording.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use ts_rs::TS;

/// The state of a recording's playback. All other data is from the newest sample played.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, TS, JsonSchema)]
pub struct Playback {
    /// The time of the recording's first sample.
    pub from_ms: u64,
    /// The time of the recording's last sample.
    pub to_ms: u64,
    /// The speed relative to real time.
    pub speed: f64,
    /// Whether a user has paused the playback.
    pub paused: bool,
    /// Whether the playback has reached the last sample.
    pub ended: bool,
}
