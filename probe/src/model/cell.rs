//! The GPU use of a notebook cell.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use ts_rs::TS;

/// The GPU use of one execution of a notebook's cell, as measured by the front end that ran the
/// cell. Cells that used no GPU have no entry.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Cell {
    /// The file name of the notebook.
    pub notebook: String,
    /// The ID that Jupyter gave the kernel.
    pub kernel_id: String,
    /// The ID of the cell in the notebook file.
    pub cell_id: String,
    /// The execution count of the cell, or `null` if the kernel does not count executions.
    pub execution_count: Option<u32>,
    /// The time at which the execution started, in milliseconds since 1970.
    pub started_ms: u64,
    /// The time at which the execution ended, in milliseconds since 1970.
    pub ended_ms: u64,
    /// The GPUs on which the notebook's kernel had memory, by NVML's index.
    pub gpus: Vec<u32>,
    /// Time in which GPU kernels of the cell ran, summed over GPUs, in milliseconds; `null` if the
    /// driver does not report it.
    pub gpu_ms: Option<f64>,
    /// The peak device memory of the notebook's kernel, summed over all GPUs, in bytes; `null` if
    /// the driver does not report it.
    pub peak_bytes: Option<f64>,
    /// The change in the kernel's device memory during the execution, in bytes; negative if memory
    /// was freed.
    pub change_bytes: Option<f64>,
    /// Energy of the GPUs that the kernel used, including the share of other processes; `null` if
    /// power is not reported.
    pub joules: Option<f64>,
    /// Whether other processes used one of the cell's GPUs at the same time. If so, `joules`
    /// includes their energy.
    pub shared: bool,
    /// The login name of the user who reported the cell, if the server can determine the user. The
    /// server sets this field. Other users receive the event without the notebook's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub user: Option<String>,
}
