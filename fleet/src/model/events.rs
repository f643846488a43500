//! Events of a fleet.

use std::cmp::Reverse;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use ts_rs::TS;

use super::FleetState;

/// Xids and lost GPUs of a time range: the answer of `/api/v1/fleet/events`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, TS)]
pub struct FleetEvents {
    /// Start of the time range, in milliseconds since 1970.
    pub from_ms: u64,
    /// End of the time range, in milliseconds since 1970.
    pub to_ms: u64,
    /// Whether everything could be read.
    pub state: FleetState,
    /// Problems with the source, each as a sentence with a remedy.
    pub problems: Vec<String>,
    /// The events, lasting ones first, and then the newest.
    pub events: Vec<FleetEvent>,
    /// The total number of events, including those not listed.
    pub events_total: u32,
}

/// The maximum number of listed events.
const MOST_EVENTS: usize = 1000;

impl FleetEvents {
    /// Returns the events of a time range before anything has been read.
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

    /// Sets the events, limited to the newest. Events that still last come first.
    pub fn set_events(&mut self, mut events: Vec<FleetEvent>) {
        events.sort_by_key(|event| Reverse((event.lasts, event.last_ms)));
        self.events_total = events.len() as u32;
        events.truncate(MOST_EVENTS);
        self.events = events;
    }
}

/// A problem of a GPU or a node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, TS)]
pub struct FleetEvent {
    /// The name of the node.
    pub node: String,
    /// NVML's index of the GPU; `null` for a problem of the node.
    pub gpu: Option<u32>,
    /// The kind of the event.
    pub kind: FleetEventKind,
    /// The number of an Xid.
    pub xid: Option<u32>,
    /// The number of occurrences in the time range.
    pub count: u32,
    /// The time of the last occurrence, in milliseconds since 1970, with the resolution of the
    /// query.
    pub last_ms: u64,
    /// Whether the problem still lasts.
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
    /// A node did not respond.
    NodeUnreachable,
}
