//! What went wrong.

use std::cmp::Reverse;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use ts_rs::TS;

use super::FleetState;

/// Xids and lost GPUs of a span of time: the answer of `/api/v1/fleet/events`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, TS)]
pub struct FleetEvents {
    /// When the span begins, in milliseconds since 1970.
    pub from_ms: u64,
    /// When it ends.
    pub to_ms: u64,
    /// Whether all could be read.
    pub state: FleetState,
    /// What could not, each in a sentence with its cure.
    pub problems: Vec<String>,
    /// The events, what lasts and what is newest first.
    pub events: Vec<FleetEvent>,
    /// How many there were in all.
    pub events_total: u32,
}

/// So many events are listed.
const MOST_EVENTS: usize = 1000;

impl FleetEvents {
    /// Returns the events of a span about which nothing is known yet.
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

    /// Lists the newest of these events. Events that still last come first.
    pub fn set_events(&mut self, mut events: Vec<FleetEvent>) {
        events.sort_by_key(|event| Reverse((event.lasts, event.last_ms)));
        self.events_total = events.len() as u32;
        events.truncate(MOST_EVENTS);
        self.events = events;
    }
}

/// What went wrong with a GPU or a node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, TS)]
pub struct FleetEvent {
    /// The name of the node.
    pub node: String,
    /// NVML's index; `null` for what befell the node.
    pub gpu: Option<u32>,
    /// What.
    pub kind: FleetEventKind,
    /// The number of an Xid.
    pub xid: Option<u32>,
    /// How often.
    pub count: u32,
    /// When it last was so, in milliseconds since 1970; to the resolution at which that was asked.
    pub last_ms: u64,
    /// Whether it still is.
    pub lasts: bool,
}

/// What can go wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, TS)]
#[serde(rename_all = "snake_case")]
pub enum FleetEventKind {
    /// The driver reported an Xid.
    Xid,
    /// A GPU was lost, or did not respond.
    GpuNotResponding,
    /// A node did not answer.
    NodeUnreachable,
}
