//! The types for a fleet's or a node's readings over time.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use ts_rs::TS;

use super::FleetState;

/// Readings over time: the response of `/api/v1/fleet/history`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema, TS)]
pub struct FleetHistory {
    /// The name of the node, or `null` for all nodes.
    pub node: Option<String>,
    /// Whether all data could be read.
    pub state: FleetState,
    /// Problems with the source, each as a sentence with a remedy.
    pub problems: Vec<String>,
    /// The times of the values, in milliseconds since 1970, at equal intervals.
    pub at_ms: Vec<u64>,
    /// The readings, as one series each.
    pub series: Vec<FleetSeries>,
}

/// One reading over time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema, TS)]
pub struct FleetSeries {
    /// The averaged reading `utilization.gpu_percent`, or one of the sums `memory.used_bytes`,
    /// `memory.total_bytes`, `power.draw_watts`, `gpus`, `gpus_held`. For hosts over ssh,
    /// `gpus_held` counts GPUs that had load or more than 1 GiB of memory in use.
    pub id: String,
    /// One value for each time in `at_ms`; `null` if there is none.
    pub values: Vec<Option<f64>>,
}
