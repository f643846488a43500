//! What a cell of a notebook took of the GPUs.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use ts_rs::TS;

/// An execution of a notebook's cell that took something of the GPUs, as the front end that ran it
/// has measured it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Cell {
    /// The notebook's file name.
    pub notebook: String,
    /// Jupyter's ID of the kernel.
    pub kernel_id: String,
    /// The ID of the cell in the notebook's file.
    pub cell_id: String,
    /// As the notebook counts executions; `null` where the kernel does not.
    pub execution_count: Option<u32>,
    /// When it began, in milliseconds since 1970.
    pub started_ms: u64,
    /// When it was over.
    pub ended_ms: u64,
    /// The GPUs that the kernel held, by NVML's index.
    pub gpus: Vec<u32>,
    /// Time in which its kernels ran, summed over GPUs, in milliseconds; `null` where the driver
    /// does not tell.
    pub gpu_ms: Option<f64>,
    /// The most memory that the kernel held at once, over all GPUs, in bytes; `null` where the
    /// driver does not tell.
    pub peak_bytes: Option<f64>,
    /// How much more, or less, it held after the execution than before, in bytes.
    pub change_bytes: Option<f64>,
    /// Energy of the GPUs that it held, with what others did there; `null` where power is not told.
    pub joules: Option<f64>,
    /// Whether others held one of those GPUs at the same time, so that not all of the energy is the
    /// cell's.
    pub shared: bool,
    /// The login name of the user who reported it, if the server knows that user. The server fills
    /// it in. Other users get the event without the notebook's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub user: Option<String>,
}
