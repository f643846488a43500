//! Who used how much.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use ts_rs::TS;

use super::{FleetOwner, FleetState};

/// Who used how much of a fleet in a span of time: the answer of `/api/v1/fleet/usage`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema, TS)]
pub struct FleetUsage {
    /// When the span begins, in milliseconds since 1970.
    pub from_ms: u64,
    /// When it ends.
    pub to_ms: u64,
    /// Whether all could be read.
    pub state: FleetState,
    /// What could not, each in a sentence with its cure.
    pub problems: Vec<String>,
    /// Owners, those with most GPU time first; at most as many as `limit`.
    pub owners: Vec<OwnerUsage>,
    /// How many owners there were in all.
    pub owners_total: u32,
    /// Time in which nobody held a GPU, summed over GPUs, in seconds.
    pub unheld_gpu_s: Option<f64>,
    /// Energy of GPUs meanwhile, in joules.
    pub unheld_energy_joules: Option<f64>,
    /// Energy of all GPUs, in joules.
    pub energy_joules: Option<f64>,
}

/// What one owner used.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema, TS)]
pub struct OwnerUsage {
    /// Who.
    pub owner: FleetOwner,
    /// Time in which GPUs were held, summed over GPUs, in seconds.
    pub gpu_s: Option<f64>,
    /// Of that, time in which kernels ran, in seconds.
    pub active_gpu_s: Option<f64>,
    /// Energy, in joules.
    pub energy_joules: Option<f64>,
    /// On how many nodes.
    pub nodes: u32,
}
