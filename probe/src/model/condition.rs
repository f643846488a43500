//! Conditions of a GPU, each with a start and an end, and the severity of conditions and alerts.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use ts_rs::TS;

use super::{RecoveryAction, ThrottleReason};
use crate::{flat, tagged};

/// A state of a GPU that its users should know about. A condition has a start and an end, and is
/// part of every sample in between.
#[derive(Debug, Clone, PartialEq, Serialize, TS, JsonSchema)]
pub struct Condition {
    /// The time at which the condition began.
    pub since_ms: u64,
    /// The severity of the condition.
    pub severity: Severity,
    /// The condition and its cause, as a sentence.
    pub text: String,
    /// The kind of the condition, with its values, for programs.
    #[serde(flatten)]
    #[ts(flatten)]
    pub kind: ConditionKind,
}

/// The kind of a condition, distinguished by the tag `condition`.
#[derive(Debug, Clone, PartialEq, Serialize, TS, JsonSchema)]
#[serde(tag = "condition", rename_all = "snake_case")]
pub enum ConditionKind {
    /// The driver reported an error.
    Xid {
        /// NVIDIA's number for the error.
        code: u32,
        /// The process that caused the latest error, if the driver reports the process.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[ts(optional)]
        pid: Option<u32>,
        /// Number of errors with this code since the condition began.
        count: u32,
        /// The time of the latest error.
        last_ms: u64,
    },
    /// The clocks are reduced for a reason that the driver reports.
    Throttled {
        /// The reasons for the reduced clocks.
        reasons: Vec<ThrottleReason>,
        /// The power limit, if it is available.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[ts(optional)]
        limit_watts: Option<f64>,
        /// The GPU's temperature, if it is available.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[ts(optional)]
        gpu_celsius: Option<f64>,
    },
    /// Processes hold memory, and none of them has run a kernel for minutes.
    HeldIdle {
        /// The device memory of the idle processes, in bytes.
        bytes: u64,
        /// The time since the last kernel ran.
        idle_ms: u64,
        /// The PIDs of the idle processes.
        pids: Vec<u32>,
    },
    /// Kernels run all the time, but use only a small part of the GPU.
    HardlyUsed {
        /// Share of time in which a kernel ran.
        gpu_percent: f64,
        /// Share of time in which the multiprocessors had work.
        sm_percent: f64,
        /// Share of time in which the tensor cores had work.
        tensor_percent: Option<f64>,
    },
    /// Kernels have run for minutes without a pause and without progress, as in a collective
    /// operation that waits for a process that never arrives.
    SuspectedHang {
        /// The power draw, which is close to that of a GPU with an idle program.
        power_watts: f64,
        /// The PIDs of the processes on this GPU.
        pids: Vec<u32>,
        /// Other GPUs of the same job that also seem to hang, by NVML's index.
        waiting: Vec<u32>,
        /// Processes of the same job on GPUs that do not seem to hang. The job's other processes
        /// probably wait for them. Empty if most GPUs of the job do not seem to hang.
        differing: Vec<GpuProcess>,
    },
    /// Memory is in use, but belongs to no listed process.
    HeldByNobody {
        /// The memory that belongs to no listed process.
        bytes: u64,
    },
    /// The clock or the power draw has been lower for minutes than this GPU's usual value at the
    /// same load, and the driver reports no reason.
    SlowerThanItself {
        /// The current clock of the multiprocessors.
        sm_mhz: f64,
        /// The usual clock of the multiprocessors at this load.
        usual_sm_mhz: f64,
        /// The current power draw of the GPU.
        power_watts: f64,
        /// The usual power draw of the GPU at this load.
        usual_power_watts: f64,
        /// GPUs of the same model that are faster at about the same load, by NVML's index.
        siblings: Vec<u32>,
    },
    /// The latest benchmark of this GPU was slower than its baseline.
    BelowBaseline {
        /// The workload that is furthest below its baseline.
        workload: String,
        /// The element type of the workload.
        dtype: String,
        /// The latest result, a median in microseconds.
        median_us: f64,
        /// The baseline of the same workload, a median in microseconds.
        baseline_us: f64,
        /// The time at which the latest result was measured.
        measured_ms: u64,
        /// The time at which the baseline was measured.
        baseline_ms: u64,
    },
    /// Little memory is free, so the next allocation may fail.
    MemoryNearlyFull {
        /// Free device memory of the GPU.
        free_bytes: u64,
        /// Total device memory of the GPU.
        total_bytes: u64,
    },
    /// Memory in use has grown steadily for half a minute, and will fill the GPU within an hour.
    MemoryFilling {
        /// The time until the memory is full at the current growth rate.
        left_ms: u64,
        /// The rate at which memory in use grows.
        bytes_per_second: f64,
        /// The processes that allocate memory, the fastest first.
        growing: Vec<MemoryGrowth>,
    },
    /// The hardware detected memory errors that it could not correct since the driver was loaded.
    EccUncorrected {
        /// The number of uncorrected errors.
        count: u64,
    },
    /// Rows of memory were replaced by spare rows, or could not be replaced.
    RowRemap {
        /// Whether the replacement takes effect only after a reset of the GPU.
        pending: bool,
        /// Whether no spare row was left, so that the board should be replaced.
        failed: bool,
    },
    /// Pages of memory are waiting to be retired, which needs a reset of the GPU.
    PageRetirementPending,
    /// The driver requests a recovery before the GPU is used again.
    RecoveryNeeded {
        /// The recovery that the driver requests.
        action: RecoveryAction,
    },
    /// NVLinks are down that should be up.
    NvLinkDown {
        /// The numbers of the links that are down.
        links: Vec<u32>,
    },
    /// The PCIe link has fewer lanes than board and slot support.
    PcieDegraded {
        /// Number of lanes currently in use.
        width: u32,
        /// Number of lanes that board and slot support.
        max_width: u32,
    },
}

impl ConditionKind {
    /// Returns the severity of the condition. For an Xid, the severity comes from the table of
    /// driver errors instead.
    pub fn severity(&self) -> Severity {
        match self {
            Self::Throttled { reasons, .. } => {
                let severities = reasons.iter().filter_map(|it| it.info().severity);
                severities.max().unwrap_or(Severity::Notice)
            }
            Self::MemoryFilling {
                left_ms: 300_000.., ..
            }
            | Self::HeldIdle { .. }
            | Self::HardlyUsed { .. }
            | Self::HeldByNobody { .. } => Severity::Notice,
            // With less than a minute left, there is not enough time to react, so the condition is
            // critical.
            Self::MemoryFilling {
                left_ms: ..60_000, ..
            }
            | Self::RowRemap { failed: true, .. }
            | Self::EccUncorrected { .. } => Severity::Critical,
            Self::RecoveryNeeded { action } if *action != RecoveryAction::DrainP2p => {
                Severity::Critical
            }
            Self::Xid { .. }
            | Self::SuspectedHang { .. }
            | Self::SlowerThanItself { .. }
            | Self::BelowBaseline { .. }
            | Self::MemoryNearlyFull { .. }
            | Self::MemoryFilling { .. }
            | Self::RowRemap { .. }
            | Self::PageRetirementPending
            | Self::RecoveryNeeded { .. }
            | Self::NvLinkDown { .. }
            | Self::PcieDegraded { .. } => Severity::Warning,
        }
    }
}

/// A process on one of the GPUs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS, JsonSchema)]
pub struct GpuProcess {
    /// NVML's index of the GPU.
    pub gpu: u32,
    /// The PID of the process.
    pub pid: u32,
}

/// The memory growth of one process.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS, JsonSchema)]
pub struct MemoryGrowth {
    /// The PID of the process.
    pub pid: u32,
    /// The growth rate over the last half minute.
    pub bytes_per_second: f64,
}

flat! { Condition { since_ms, severity, text, kind: rest } }

tagged!(ConditionKind by "condition" {
    "xid" => Xid { code, pid, count, last_ms },
    "throttled" => Throttled { reasons, limit_watts, gpu_celsius },
    "held_idle" => HeldIdle { bytes, idle_ms, pids },
    "hardly_used" => HardlyUsed { gpu_percent, sm_percent, tensor_percent },
    "suspected_hang" => SuspectedHang { power_watts, pids, waiting, differing },
    "held_by_nobody" => HeldByNobody { bytes },
    "slower_than_itself" => SlowerThanItself { sm_mhz, usual_sm_mhz, power_watts, usual_power_watts, siblings },
    "below_baseline" => BelowBaseline { workload, dtype, median_us, baseline_us, measured_ms, baseline_ms },
    "memory_nearly_full" => MemoryNearlyFull { free_bytes, total_bytes },
    "memory_filling" => MemoryFilling { left_ms, bytes_per_second, growing },
    "ecc_uncorrected" => EccUncorrected { count },
    "row_remap" => RowRemap { pending, failed },
    "page_retirement_pending" => PageRetirementPending,
    "recovery_needed" => RecoveryNeeded { action },
    "nv_link_down" => NvLinkDown { links },
    "pcie_degraded" => PcieDegraded { width, max_width },
});

/// The severity of a condition or alert.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, TS, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// Information that may be useful to know.
    Notice,
    /// Work is slower, or may soon be impossible.
    Warning,
    /// Results may be wrong, or the GPU may soon be unusable.
    Critical,
}

impl Severity {
    /// Returns the severity as a number for metrics and fleets: 1 for a notice, 2 for a warning, 3
    /// if critical.
    pub fn rank(self) -> u8 {
        1 + self as u8
    }
}
