//! What a command, a cell of a notebook or a part of a program took of the GPUs.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use ts_rs::TS;

use super::Mark;
use crate::{owner::clean_line, stat::Spread, units::three_digits_of, usage::Joules};

/// Bytes in notebooks are whole multiples of this, so that two runs of a cell differ in nothing
/// where they differ in little.
const STORED_BYTES: f64 = 1024.0 * 1024.0;

/// What something took of the GPUs, with all that its processes have started: `gpumon run --json`,
/// and a measurement of the Python package. Where nothing of it held a GPU, `gpus` is empty.
#[derive(Debug, Clone, Default, PartialEq, Serialize, TS, JsonSchema)]
pub struct Cost {
    /// The version of this form: 1.
    pub version: u32,
    /// What was measured, as it was named; `null` where it was not.
    pub name: Option<String>,
    /// When it began, in milliseconds since 1970.
    pub started_ms: u64,
    /// When it was over; of what still runs, until when this tells of it.
    pub ended_ms: u64,
    /// How long that was, in seconds.
    pub duration_s: f64,
    /// Time in which its kernels ran, summed over GPUs, in seconds; `null` where the driver does
    /// not tell.
    pub gpu_s: Option<f64>,
    /// The most memory that it held at once, over all GPUs; `null` where the driver does not tell.
    pub peak_memory_bytes: Option<u64>,
    /// How much more, or less, it held at its end than before; `null` where its processes have
    /// ended, too.
    pub memory_change_bytes: Option<i64>,
    /// Energy of the GPUs while it held them: exact where it held them alone, but for the sample in
    /// which it came or left; else a range. `null` where power is not told.
    pub energy_joules: Option<Joules>,
    /// Whether others held one of its GPUs at the same time.
    pub shared: bool,
    /// What it took of each GPU that it held, by index.
    pub gpus: Vec<GpuCost>,
    /// Driver errors of these GPUs.
    pub xids: Vec<CostXid>,
    /// The moments that were marked meanwhile.
    pub marks: Vec<CostMark>,
    /// What is not known, and why, in sentences.
    pub lost: Vec<String>,
}

/// What something took of one GPU.
#[derive(Debug, Clone, Default, PartialEq, Serialize, TS, JsonSchema)]
pub struct GpuCost {
    /// NVML's index.
    pub index: u32,
    /// Its UUID, where the driver has told it.
    pub uuid: Option<String>,
    /// Its name, where the driver has told it.
    pub name: Option<String>,
    /// How long a process of it held the GPU, in seconds.
    pub held_s: f64,
    /// Time in which its kernels ran, in seconds: of a GPU that it held alone as the driver records
    /// it five times a second (`NVML_GPU_UTILIZATION_SAMPLES`), else by the shares of its processes
    /// (`smUtil`).
    pub gpu_s: Option<f64>,
    /// Multiprocessors that had work, while it held the GPU, with what others did there (GPM's
    /// `SM_UTIL`); `null` before Hopper.
    pub sm_percent: Option<Spread>,
    /// The same of the tensor cores (`ANY_TENSOR_UTIL`).
    pub tensor_percent: Option<Spread>,
    /// The same of the bandwidth of device memory (`DRAM_BW_UTIL`).
    pub dram_percent: Option<Spread>,
    /// As of the whole, on this GPU.
    pub peak_memory_bytes: Option<u64>,
    /// As of the whole, on this GPU.
    pub memory_change_bytes: Option<i64>,
    /// As of the whole, on this GPU.
    pub energy_joules: Option<Joules>,
    /// Whether others held it at the same time.
    pub shared: bool,
    /// What crossed the PCIe link to the GPU while it held it, of whomever.
    pub pcie_rx_bytes: Option<u64>,
    /// The same from the GPU.
    pub pcie_tx_bytes: Option<u64>,
    /// What crossed all NVLinks to the GPU while it held it, of whomever.
    pub nvlink_rx_bytes: Option<u64>,
    /// The same from the GPU.
    pub nvlink_tx_bytes: Option<u64>,
    /// What was the matter with the GPU while it held it, the first first.
    pub conditions: Vec<CostCondition>,
}

/// A condition of a GPU while something held it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, TS, JsonSchema)]
pub struct CostCondition {
    /// Its kind, as `condition` of samples.
    pub kind: String,
    /// What it was, as it was told last.
    pub text: String,
    /// Since when it mattered here, in milliseconds since 1970.
    pub from_ms: u64,
    /// Until when.
    pub to_ms: u64,
}

/// A driver error.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, TS, JsonSchema)]
pub struct CostXid {
    /// When it was reported, in milliseconds since 1970.
    pub at_ms: u64,
    /// NVML's index of the GPU, where the driver has told it.
    pub gpu: Option<u32>,
    /// NVIDIA's number.
    pub xid: u32,
    /// What it means, and what to do about it.
    pub text: String,
}

/// A moment that was marked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, TS, JsonSchema)]
pub struct CostMark {
    /// When, in milliseconds since 1970.
    pub at_ms: u64,
    /// As [`Mark::text`].
    pub text: String,
}

impl CostMark {
    /// What somebody says about a moment, in as many characters as a server takes.
    pub fn read(at_ms: u64, text: &str) -> Self {
        Self {
            at_ms,
            text: clean_line(text.trim())
                .chars()
                .take(Mark::LONGEST_TEXT)
                .collect(),
        }
    }

    /// Of a mark at a moment.
    pub fn new(at_ms: u64, mark: &Mark) -> Self {
        Self {
            at_ms,
            text: mark.text.clone(),
        }
    }
}

/// What the last run of a notebook's cell took of the GPUs, as it is kept in the notebook:
/// `cell.metadata.gpumon`.
///
/// Times and energy are rounded to three digits and memory to MiB, so that a notebook that is run
/// again differs little.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS, JsonSchema)]
pub struct StoredCost {
    /// The version of this form: 1.
    pub version: u32,
    /// How long the cell ran, in seconds.
    pub duration_s: f64,
    /// Time in which its kernels ran, summed over GPUs, in seconds; `null` where the driver does
    /// not tell.
    pub gpu_s: Option<f64>,
    /// The most memory that the kernel held at once, over all GPUs; `null` where the driver does
    /// not tell.
    pub peak_memory_bytes: Option<f64>,
    /// How much more, or less, it held after the run than before.
    pub memory_change_bytes: Option<f64>,
    /// Energy of the GPUs while it held them, in joules; where others held them, too, with what
    /// these used. `null` where power is not told.
    pub energy_joules: Option<f64>,
    /// Whether others held one of its GPUs at the same time.
    pub shared: bool,
    /// The names of the GPUs that it held, by index.
    pub gpus: Vec<String>,
    /// The run that this is the cost of. If it is missing, as in entries of older versions, or is
    /// not the cell's current run, this is the cost of an earlier run.
    pub run: Option<CellRun>,
}

/// A run of a notebook's cell, identified by what the cell itself records.
/// `tests/stored-cost-runs.json` has cases of how a run is compared with a cell.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS, JsonSchema)]
pub struct CellRun {
    /// The CRC-32 of the source in UTF-8.
    pub source_crc32: u32,
    /// The cell's `execution_count`; `null` if it has none.
    pub execution_count: Option<u32>,
    /// When the run started: `metadata.execution["iopub.execute_input"]` of the cell; `null` if it
    /// is not recorded.
    pub started: Option<String>,
}

impl StoredCost {
    /// The version of the form.
    pub const VERSION: u32 = 1;
    /// Thirty years.
    const LONGEST_S: f64 = 1e9;
    /// Eight pebibytes.
    const MOST_BYTES: f64 = 9_007_199_254_740_992.0;
    /// What a power station supplies in a week.
    const MOST_JOULES: f64 = 1e15;
    /// GPUs of one cell.
    const MOST_GPUS: usize = 1024;

    /// Whether the numbers are within what a cell can cost; a file can say anything. The page has
    /// the same limits.
    pub fn is_possible(&self) -> bool {
        let is_within = |value: f64, most: f64| (0.0..=most).contains(&value);
        let is_absent_or =
            |value: Option<f64>, most: f64| value.is_none_or(|value| is_within(value, most));
        is_within(self.duration_s, Self::LONGEST_S)
            && is_absent_or(self.gpu_s, Self::LONGEST_S)
            && is_absent_or(self.peak_memory_bytes, Self::MOST_BYTES)
            && is_absent_or(self.memory_change_bytes.map(f64::abs), Self::MOST_BYTES)
            && is_absent_or(self.energy_joules, Self::MOST_JOULES)
            && self.gpus.len() <= Self::MOST_GPUS
    }

    /// Returns what a notebook stores of a cost, except for the run; `None` if no GPU was held.
    pub fn new(cost: &Cost) -> Option<Self> {
        // Adding 0 turns -0 into 0, which would be another text in a file.
        let whole_mib = |bytes: f64| (bytes / STORED_BYTES).round() * STORED_BYTES + 0.0;
        let gpus: Vec<_> = cost
            .gpus
            .iter()
            .map(|gpu| gpu.name.clone().unwrap_or_else(|| "GPU".to_owned()))
            .collect();
        (!gpus.is_empty()).then(|| Self {
            version: Self::VERSION,
            duration_s: three_digits_of(cost.duration_s),
            gpu_s: cost.gpu_s.map(three_digits_of),
            peak_memory_bytes: cost.peak_memory_bytes.map(|bytes| whole_mib(bytes as f64)),
            memory_change_bytes: cost
                .memory_change_bytes
                .map(|bytes| whole_mib(bytes as f64)),
            energy_joules: cost
                .energy_joules
                .map(|joules| three_digits_of(joules.most)),
            shared: cost.shared,
            gpus,
            run: None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_notebook_keeps_round_numbers() {
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
        let stored = serde_json::to_value(StoredCost::new(&cost)).unwrap();
        let expected = serde_json::json!({
            "version": 1, "duration_s": 12.3, "gpu_s": 0.000_123, "peak_memory_bytes": 3_145_728.0,
            "memory_change_bytes": -1_048_576.0, "energy_joules": 6120.0, "shared": false, "gpus": ["NVIDIA H200"],
            "run": null,
        });
        assert_eq!(stored, expected);
        let little = StoredCost::new(&Cost {
            memory_change_bytes: Some(-1),
            ..cost
        });
        let change = little.and_then(|cost| cost.memory_change_bytes);
        assert!(change.is_some_and(|bytes| bytes == 0.0 && bytes.is_sign_positive()));
        assert_eq!(
            StoredCost::new(&Cost {
                duration_s: 1.0,
                ..Cost::default()
            }),
            None
        );
    }
}
