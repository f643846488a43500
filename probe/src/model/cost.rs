//! The GPU use of a command, a notebook cell or a part of a program.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use ts_rs::TS;

use super::{LimitSummary, Mark};
use crate::{owner::clean_line, stat::Spread, units::round_to_three_digits, usage::Joules};

/// Stored amounts of memory are multiples of this size, so that small differences between two runs
/// of a cell do not change the notebook file.
const STORED_UNIT_BYTES: f64 = 1024.0 * 1024.0;

/// The GPU use of a measurement, including all processes that it started: the output of `gpumon run
/// --json` and of the Python package. `gpus` is empty if the measurement used no GPU.
#[derive(Debug, Clone, Default, PartialEq, Serialize, TS, JsonSchema)]
pub struct Cost {
    /// The version of this format: 1.
    pub version: u32,
    /// The name of the measurement, or `null` if it has none.
    pub name: Option<String>,
    /// The time at which the measurement started, in milliseconds since 1970.
    pub started_ms: u64,
    /// The time at which the measurement ended, in milliseconds since 1970. For a running
    /// measurement, the time of the latest data.
    pub ended_ms: u64,
    /// The duration of the measurement, in seconds.
    pub duration_s: f64,
    /// Time in which the measurement's GPU kernels ran, summed over GPUs, in seconds; `null` if the
    /// driver does not report it.
    pub gpu_s: Option<f64>,
    /// The peak device memory, summed over all GPUs; `null` if the driver does not report it.
    pub peak_memory_bytes: Option<u64>,
    /// The change in device memory between the start and the end of the measurement; `null` if the
    /// driver does not report it, or if the processes have ended.
    pub memory_change_bytes: Option<i64>,
    /// Energy of the GPUs while the measurement used them. For GPUs without other users, the energy
    /// is exact except for the first and the last sample; otherwise it is a range. `null` if power
    /// is not reported.
    pub energy_joules: Option<Joules>,
    /// Whether other processes used one of the GPUs at the same time.
    pub shared: bool,
    /// The causes that limited the GPUs, as the mean over all GPUs; `null` if the measurement was
    /// shorter than a second.
    pub limits: Option<LimitSummary>,
    /// The use of each GPU, by index.
    pub gpus: Vec<GpuCost>,
    /// Driver errors of the GPUs during the measurement.
    pub xids: Vec<CostXid>,
    /// The moments that were marked during the measurement.
    pub marks: Vec<CostMark>,
    /// Descriptions of missing data and the reasons, as sentences.
    pub lost: Vec<String>,
}

/// A measurement's use of one GPU.
#[derive(Debug, Clone, Default, PartialEq, Serialize, TS, JsonSchema)]
pub struct GpuCost {
    /// NVML's index of the GPU.
    pub index: u32,
    /// The GPU's UUID, if the driver reports it.
    pub uuid: Option<String>,
    /// The GPU's name, if the driver reports it.
    pub name: Option<String>,
    /// The time during which a process of the measurement was on the GPU, in seconds.
    pub held_s: f64,
    /// Time in which the measurement's kernels ran, in seconds. For a GPU without other users, the
    /// time is calculated from the driver's records of five values per second
    /// (`NVML_GPU_UTILIZATION_SAMPLES`), otherwise from the shares of the processes (`smUtil`).
    pub gpu_s: Option<f64>,
    /// Share of time in which the multiprocessors had work while the measurement used the GPU,
    /// including the work of other processes (GPM's `SM_UTIL`); `null` before Hopper.
    pub sm_percent: Option<Spread>,
    /// Share of time in which the tensor cores had work, including the work of other processes
    /// (`ANY_TENSOR_UTIL`).
    pub tensor_percent: Option<Spread>,
    /// Used share of the bandwidth of device memory, including use by other processes
    /// (`DRAM_BW_UTIL`).
    pub dram_percent: Option<Spread>,
    /// The peak device memory on this GPU; `null` if the driver does not report it.
    pub peak_memory_bytes: Option<u64>,
    /// The change in device memory on this GPU between the start and the end of the measurement;
    /// `null` if the driver does not report it, or if the processes have ended.
    pub memory_change_bytes: Option<i64>,
    /// Energy of this GPU while the measurement used it, a range if other processes used it at the
    /// same time; `null` if power is not reported.
    pub energy_joules: Option<Joules>,
    /// Whether other processes used this GPU at the same time.
    pub shared: bool,
    /// Data transferred to the GPU over PCIe while the measurement used the GPU, including data of
    /// other processes.
    pub pcie_rx_bytes: Option<u64>,
    /// Data transferred from the GPU over PCIe while the measurement used the GPU, including data
    /// of other processes.
    pub pcie_tx_bytes: Option<u64>,
    /// Data transferred to the GPU over all NVLinks while the measurement used the GPU, including
    /// data of other processes.
    pub nvlink_rx_bytes: Option<u64>,
    /// Data transferred from the GPU over all NVLinks while the measurement used the GPU, including
    /// data of other processes.
    pub nvlink_tx_bytes: Option<u64>,
    /// The causes that limited the measurement while it used the GPU; `null` if the measurement was
    /// shorter than a second.
    pub limits: Option<LimitSummary>,
    /// Conditions of the GPU while the measurement used it, the earliest first.
    pub conditions: Vec<CostCondition>,
}

/// A condition of a GPU while a measurement used it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, TS, JsonSchema)]
pub struct CostCondition {
    /// The kind of the condition, as in `condition` of samples.
    pub kind: String,
    /// The latest text of the condition.
    pub text: String,
    /// The start of the condition within the measurement, in milliseconds since 1970.
    pub from_ms: u64,
    /// The end of the condition within the measurement, in milliseconds since 1970.
    pub to_ms: u64,
}

/// A driver error during a measurement.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, TS, JsonSchema)]
pub struct CostXid {
    /// The time at which the driver reported the error, in milliseconds since 1970.
    pub at_ms: u64,
    /// NVML's index of the GPU, if the driver reports it.
    pub gpu: Option<u32>,
    /// NVIDIA's number for the error.
    pub xid: u32,
    /// The meaning of the error and its remedy.
    pub text: String,
}

/// A moment that was marked during a measurement.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, TS, JsonSchema)]
pub struct CostMark {
    /// The time of the mark, in milliseconds since 1970.
    pub at_ms: u64,
    /// The text of the mark.
    pub text: String,
}

impl CostMark {
    /// Creates a mark. The text is converted to a single line and truncated to the length that
    /// servers accept.
    pub fn from_text(at_ms: u64, text: &str) -> Self {
        Self {
            at_ms,
            text: clean_line(text.trim())
                .chars()
                .take(Mark::MAX_TEXT_CHARS)
                .collect(),
        }
    }

    pub fn from_mark(at_ms: u64, mark: &Mark) -> Self {
        Self {
            at_ms,
            text: mark.text.clone(),
        }
    }
}

/// The GPU use of the last run of a notebook's cell, as stored in the notebook:
/// `cell.metadata.gpumon`.
///
/// Times and energy are rounded to three digits and memory to MiB, so that running a notebook again
/// changes little in its file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS, JsonSchema)]
pub struct StoredCost {
    /// The version of this format: 1.
    pub version: u32,
    /// The duration of the run, in seconds.
    pub duration_s: f64,
    /// Time in which GPU kernels of the cell ran, summed over GPUs, in seconds; `null` if the
    /// driver does not report it.
    pub gpu_s: Option<f64>,
    /// The peak device memory of the notebook's kernel, summed over all GPUs; `null` if the driver
    /// does not report it.
    pub peak_memory_bytes: Option<f64>,
    /// The change in the device memory of the notebook's kernel during the run, in bytes.
    pub memory_change_bytes: Option<f64>,
    /// Energy of the GPUs while the notebook's kernel used them, in joules, including the share of
    /// other processes. `null` if power is not reported.
    pub energy_joules: Option<f64>,
    /// Whether other processes used one of the GPUs at the same time.
    pub shared: bool,
    /// The names of the GPUs that the kernel used, by index.
    pub gpus: Vec<String>,
    /// The run that this cost belongs to. If `run` is missing, as in entries of older versions, or
    /// is not the cell's current run, the cost is that of an earlier run.
    pub run: Option<CellRun>,
}

/// A run of a notebook's cell, identified by data of the cell itself. `tests/stored-cost-runs.json`
/// has test cases for the comparison of a run with a cell.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS, JsonSchema)]
pub struct CellRun {
    /// The CRC-32 of the cell's source in UTF-8.
    pub source_crc32: u32,
    /// The cell's `execution_count`; `null` if the cell has none.
    pub execution_count: Option<u32>,
    /// The time at which the run started: `metadata.execution["iopub.execute_input"]` of the cell;
    /// `null` if the time is not recorded.
    pub started: Option<String>,
}

impl StoredCost {
    pub const VERSION: u32 = 1;
    /// The longest plausible duration, about thirty years.
    const MAX_DURATION_S: f64 = 1e9;
    /// The largest plausible amount of memory, eight pebibytes.
    const MAX_BYTES: f64 = 9_007_199_254_740_992.0;
    /// The largest plausible energy, about the output of a power station in a week.
    const MAX_JOULES: f64 = 1e15;
    /// The largest plausible number of GPUs of one cell.
    const MAX_GPUS: usize = 1024;

    /// Returns `true` if all numbers are plausible. A notebook file can contain any number. The web
    /// page checks the same limits.
    pub fn is_plausible(&self) -> bool {
        let is_within = |value: f64, most: f64| (0.0..=most).contains(&value);
        let is_absent_or =
            |value: Option<f64>, most: f64| value.is_none_or(|value| is_within(value, most));
        is_within(self.duration_s, Self::MAX_DURATION_S)
            && is_absent_or(self.gpu_s, Self::MAX_DURATION_S)
            && is_absent_or(self.peak_memory_bytes, Self::MAX_BYTES)
            && is_absent_or(self.memory_change_bytes.map(f64::abs), Self::MAX_BYTES)
            && is_absent_or(self.energy_joules, Self::MAX_JOULES)
            && self.gpus.len() <= Self::MAX_GPUS
    }

    /// Converts a cost to the format stored in a notebook, and leaves `run` empty. Returns `None`
    /// if no GPU was used.
    pub fn from_cost(cost: &Cost) -> Option<Self> {
        // Adding 0 turns -0 into 0. The JSON text of -0 would differ from that of 0.
        let whole_mib = |bytes: f64| (bytes / STORED_UNIT_BYTES).round() * STORED_UNIT_BYTES + 0.0;
        let gpus: Vec<_> = cost
            .gpus
            .iter()
            .map(|gpu| gpu.name.clone().unwrap_or_else(|| "GPU".to_owned()))
            .collect();
        (!gpus.is_empty()).then(|| Self {
            version: Self::VERSION,
            duration_s: round_to_three_digits(cost.duration_s),
            gpu_s: cost.gpu_s.map(round_to_three_digits),
            peak_memory_bytes: cost.peak_memory_bytes.map(|bytes| whole_mib(bytes as f64)),
            memory_change_bytes: cost
                .memory_change_bytes
                .map(|bytes| whole_mib(bytes as f64)),
            energy_joules: cost
                .energy_joules
                .map(|joules| round_to_three_digits(joules.most)),
            shared: cost.shared,
            gpus,
            run: None,
        })
    }
}

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
    #[serde(skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub user: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stored_cost_is_rounded() {
        let gpu = GpuCost {
            name: Some("NVIDIA H200".to_owned()),
            ..GpuCost::default()
        };
        let cost = Cost {
            duration_s: 12.3456,
            gpu_s: Some(0.000_123_456),
            peak_memory_bytes: Some(3 * 1024 * 1024 + 100),
            memory_change_bytes: Some(-1024 * 1024 + 7),
            energy_joules: Some(Joules {
                least: 1.0,
                most: 6123.0,
                estimate: 3000.0,
            }),
            gpus: vec![gpu],
            ..Cost::default()
        };
        let stored = serde_json::to_value(StoredCost::from_cost(&cost)).unwrap();
        let expected = serde_json::json!({
            "version": 1, "duration_s": 12.3, "gpu_s": 0.000_123, "peak_memory_bytes": 3_145_728.0,
            "memory_change_bytes": -1_048_576.0, "energy_joules": 6120.0, "shared": false, "gpus": ["NVIDIA H200"],
            "run": null,
        });
        assert_eq!(stored, expected);
        let little = StoredCost::from_cost(&Cost {
            memory_change_bytes: Some(-1),
            ..cost
        });
        let change = little.and_then(|cost| cost.memory_change_bytes);
        assert!(change.is_some_and(|bytes| bytes == 0.0 && bytes.is_sign_positive()));
        assert_eq!(
            StoredCost::from_cost(&Cost {
                duration_s: 1.0,
                ..Cost::default()
            }),
            None
        );
    }
}
