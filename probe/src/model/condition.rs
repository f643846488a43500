//! What is the matter with a GPU, for as long as it is.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use ts_rs::TS;

use super::{RecoveryAction, Severity, ThrottleReason};
use crate::{flat, tagged};

/// Something about a GPU that its users should know. It has a beginning, is in every sample while
/// it lasts, and ends.
#[derive(Debug, Clone, PartialEq, Serialize, TS, JsonSchema)]
pub struct Condition {
    /// When it began.
    pub since_ms: u64,
    /// How much it matters.
    pub severity: Severity,
    /// What it is and why, in one sentence for people.
    pub text: String,
    /// The same for programs.
    #[serde(flatten)]
    #[ts(flatten)]
    pub kind: ConditionKind,
}

/// What the matter is, told apart by `condition`.
#[derive(Debug, Clone, PartialEq, Serialize, TS, JsonSchema)]
#[serde(tag = "condition", rename_all = "snake_case")]
pub enum ConditionKind {
    /// The driver reported an error.
    Xid {
        /// NVIDIA's number.
        code: u32,
        /// The process that the last one was about, where the driver knows it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[ts(optional)]
        pid: Option<u32>,
        /// How often since it began.
        count: u32,
        /// The last time.
        last_ms: u64,
    },
    /// The clocks are held down.
    Throttled {
        /// By what.
        reasons: Vec<ThrottleReason>,
        /// The power limit, where it is known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[ts(optional)]
        limit_watts: Option<f64>,
        /// The GPU's temperature, where it is known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[ts(optional)]
        gpu_celsius: Option<f64>,
    },
    /// Processes hold memory, and none has done anything for minutes.
    HeldIdle {
        /// What they hold.
        bytes: u64,
        /// How long nothing has run.
        idle_ms: u64,
        /// Who.
        pids: Vec<u32>,
    },
    /// Kernels run all the time, but use little of the GPU.
    HardlyUsed {
        /// Time in which a kernel ran.
        gpu_percent: f64,
        /// Multiprocessors that had work.
        sm_percent: f64,
        /// Tensor cores that had work.
        tensor_percent: Option<f64>,
    },
    /// Kernels have run for minutes without a pause, and nothing moves: as of a collective that
    /// waits for a process which never comes.
    SuspectedHang {
        /// The draw, which is about that of a GPU that a program holds and does not use.
        power_watts: f64,
        /// The processes on this GPU.
        pids: Vec<u32>,
        /// Other GPUs of the same job, by NVML's index, where it is the same.
        waiting: Vec<u32>,
        /// Those of the same job where it is not, unless they are most of its GPUs: what the others
        /// wait for.
        differing: Vec<GpuProcess>,
    },
    /// Memory is in use that no listed process holds.
    HeldByNobody {
        /// How much.
        bytes: u64,
    },
    /// Its clock or draw has been lower for minutes than is usual for this GPU at the same load,
    /// and the driver gives no reason.
    SlowerThanItself {
        /// Clock of the multiprocessors now.
        sm_mhz: f64,
        /// What it is usually at this load.
        usual_sm_mhz: f64,
        /// Draw now.
        power_watts: f64,
        /// What it is usually at this load.
        usual_power_watts: f64,
        /// GPUs of the same kind with about the same load, which are faster, by NVML's index.
        siblings: Vec<u32>,
    },
    /// A benchmark has shown that this GPU is slower than it was when its baseline was stored.
    BelowBaseline {
        /// The workload: that which is furthest below.
        workload: String,
        /// The type of its elements.
        dtype: String,
        /// The latest result, a median.
        median_us: f64,
        /// The baseline of the same work, a median.
        baseline_us: f64,
        /// When the latest result was measured.
        measured_ms: u64,
        /// When the baseline was measured.
        baseline_ms: u64,
    },
    /// Little memory is left: the next allocation may fail.
    MemoryNearlyFull {
        /// What is left.
        free_bytes: u64,
        /// Of all.
        total_bytes: u64,
    },
    /// Memory in use has grown steadily for half a minute, and will be full within an hour.
    MemoryFilling {
        /// Until it is full, if it goes on like this.
        left_ms: u64,
        /// How fast it grows.
        bytes_per_second: f64,
        /// The processes that grow, the fastest first.
        growing: Vec<MemoryGrowth>,
    },
    /// Memory errors that the hardware could not correct, since the driver was loaded.
    EccUncorrected {
        /// How many.
        count: u64,
    },
    /// Rows of memory were replaced by spare ones, or could not be.
    RowRemap {
        /// A reset of the GPU is needed for it to take effect.
        pending: bool,
        /// There was no spare row left: the board should be replaced.
        failed: bool,
    },
    /// Pages of memory wait to be retired, which a reset of the GPU does.
    PageRetirementPending,
    /// The driver asks for this before the GPU is used again.
    RecoveryNeeded {
        /// What.
        action: RecoveryAction,
    },
    /// `NVLinks` that should be up are down.
    NvLinkDown {
        /// Their numbers.
        links: Vec<u32>,
    },
    /// The PCIe link has fewer lanes than board and slot could do.
    PcieDegraded {
        /// Lanes now.
        width: u32,
        /// Lanes possible.
        max_width: u32,
    },
}

impl ConditionKind {
    /// Returns how much the condition matters. Xids have their severity in their own table.
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
            // Nobody can do much in less than a minute.
            Self::MemoryFilling {
                left_ms: ..60_000, ..
            }
            | Self::RowRemap { failed: true, .. }
            | Self::EccUncorrected { .. } => Severity::Critical,
            Self::RecoveryNeeded { action } if *action != RecoveryAction::DrainP2p => {
                Severity::Critical
            }
            _ => Severity::Warning,
        }
    }
}

/// A process on a GPU.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS, JsonSchema)]
pub struct GpuProcess {
    /// NVML's index.
    pub gpu: u32,
    /// The process.
    pub pid: u32,
}

/// How fast the memory of one process grows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS, JsonSchema)]
pub struct MemoryGrowth {
    /// The process.
    pub pid: u32,
    /// Over the last half minute.
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
