//! Readings of a fleet or a node over time.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use ts_rs::TS;

use super::FleetState;

/// Readings over time: the answer of `/api/v1/fleet/history`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema, TS)]
pub struct FleetHistory {
    /// The name of the node, or `null` for all nodes.
    pub node: Option<String>,
    /// Whether everything could be read.
    pub state: FleetState,
    /// Problems with the source, each as a sentence with a remedy.
    pub problems: Vec<String>,
    /// The times of the values, in milliseconds since 1970, at equal intervals.
    pub at_ms: Vec<u64>,
    /// The readings, one series each.
    pub series: Vec<FleetSeries>,
}

/// One reading over time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema, TS)]
pub struct FleetSeries {
    /// `utilization.gpu_percent` (average), `memory.used_bytes`, `memory.total_bytes`,
    /// `power.draw_watts`, `gpus`, `gpus_held` (sums). For hosts over ssh, a GPU counts as held if
    /// it had load or more than 1 GiB of memory in use.
    pub id: String,
    /// A value for each time; `null` if there is none.
    pub values: Vec<Option<f64>>,
}
