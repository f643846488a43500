//! The types of a fleet's events.

use std::cmp::Reverse;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use ts_rs::TS;

use super::FleetState;

/// Xids and lost GPUs in a time range: the response of `/api/v1/fleet/events`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, TS)]
pub struct FleetEvents {
    /// Start of the time range, in milliseconds since 1970.
    pub from_ms: u64,
    /// End of the time range, in milliseconds since 1970.
    pub to_ms: u64,
    /// Whether all data could be read.
    pub state: FleetState,
    /// Problems with the source, each as a sentence with a remedy.
    pub problems: Vec<String>,
    /// The events: ongoing problems first, then the most recent.
    pub events: Vec<FleetEvent>,
    /// The total number of events, including those not listed.
    pub events_total: u32,
}

/// The maximum number of events in a response.
const MAX_EVENTS: usize = 1000;

impl FleetEvents {
    /// Creates the response for a time range before any data has been read.
    pub fn empty(from_ms: u64, to_ms: u64) -> Self {
        Self {
            from_ms,
            to_ms,
            state: FleetState::Loading,
            problems: Vec::new(),
            events: Vec::new(),
            events_total: 0,
        }
    }

    /// Sets the events, sorted with ongoing problems first and then the most recent, and drops
    /// events beyond the maximum number.
    pub fn set_events(&mut self, mut events: Vec<FleetEvent>) {
        events.sort_by_key(|event| Reverse((event.lasts, event.last_ms)));
        self.events_total = events.len() as u32;
        events.truncate(MAX_EVENTS);
        self.events = events;
    }
}

/// A problem with a GPU or a node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, TS)]
pub struct FleetEvent {
    /// The name of the node.
    pub node: String,
    /// The GPU's NVML index; `null` for a problem with the node.
    pub gpu: Option<u32>,
    /// The kind of the event.
    pub kind: FleetEventKind,
    /// The Xid's number; `null` for other kinds.
    pub xid: Option<u32>,
    /// The number of occurrences in the time range.
    pub count: u32,
    /// The time of the last occurrence, in milliseconds since 1970, with the resolution of the
    /// query.
    pub last_ms: u64,
    /// Whether the problem is ongoing.
    pub lasts: bool,
}

/// The kinds of fleet events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, TS)]
#[serde(rename_all = "snake_case")]
pub enum FleetEventKind {
    /// The driver reported an Xid.
    Xid,
    /// A GPU was lost, or did not respond.
    GpuNotResponding,
    /// The node did not respond.
    NodeUnreachable,
}
