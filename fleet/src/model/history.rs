//! How a fleet, or a node, did over time.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use ts_rs::TS;

use super::FleetState;

/// Readings over time: the answer of `/api/v1/fleet/history`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema, TS)]
pub struct FleetHistory {
    /// The node, or `null` for all of them.
    pub node: Option<String>,
    /// Whether all could be read.
    pub state: FleetState,
    /// What could not, each in a sentence with its cure.
    pub problems: Vec<String>,
    /// The moments, in milliseconds since 1970, at even distances.
    pub at_ms: Vec<u64>,
    /// The readings.
    pub series: Vec<FleetSeries>,
}

/// One reading over time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema, TS)]
pub struct FleetSeries {
    /// `utilization.gpu_percent` (average), `memory.used_bytes`, `memory.total_bytes`,
    /// `power.draw_watts`, `gpus`, `gpus_held` (sums). Of hosts over ssh, those are held that had
    /// load or more than 1 GiB of memory in use.
    pub id: String,
    /// A value for each moment; `null` where there is none.
    pub values: Vec<Option<f64>>,
}
