//! Something that happened at a moment.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use ts_rs::TS;

use super::{Condition, Reading};

/// What happened, when, and to which GPU.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS, JsonSchema)]
pub struct Event {
    /// When it was noticed.
    pub at_ms: u64,
    /// The GPU it happened to; `None` where it concerns the machine.
    pub gpu: Option<GpuRef>,
    /// What.
    #[serde(flatten)]
    #[ts(flatten)]
    pub what: EventKind,
}

/// A GPU by its two names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS, JsonSchema)]
pub struct GpuRef {
    /// NVML's index.
    pub index: u32,
    /// Its UUID, where the driver has told it.
    pub uuid: Option<String>,
}

/// What happened, told apart by `what`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS, JsonSchema)]
#[serde(tag = "what", rename_all = "snake_case")]
pub enum EventKind {
    /// The driver says that the GPU is gone (`NVML_ERROR_GPU_IS_LOST`).
    GpuLost,
    /// A call to the driver for this GPU has not come back.
    GpuHung,
    /// The driver refuses to open the GPU.
    GpuFailed,
    /// The system has switched the GPU off to save power.
    GpuAsleep,
    /// The GPU answers again.
    GpuBack,
    /// The driver reported an error (NVML event, or a line of the kernel's log).
    Xid(XidReport),
    /// Memory errors were counted since the last look.
    EccErrors {
        /// Corrected by the hardware, at no loss.
        corrected: u64,
        /// Not corrected: what was computed with them is wrong, and the program that met one has ended.
        uncorrected: u64,
    },
    /// Something began to be the matter.
    ConditionBegan(Condition),
    /// It is over. The condition is as it was last.
    ConditionEnded(Condition),
    /// A process appeared on the GPU.
    ProcessStarted(ProcessRef),
    /// A process left the GPU.
    ProcessEnded(ProcessRef),
    /// MIG was switched on or off, or its instances changed.
    MigChanged,
    /// The board's power supply changed, as between battery and mains (`nvmlEventTypePowerSourceChange`).
    PowerSourceChanged,
}

/// An Xid: NVIDIA's number for what went wrong, with what it means.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS, JsonSchema)]
pub struct XidReport {
    /// NVIDIA's number.
    pub code: u32,
    /// The process it is about, where the driver says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub pid: Option<u32>,
    /// What it means, in a sentence.
    pub meaning: String,
    /// What to do about it, in a sentence.
    pub advice: String,
    /// The driver's own words, where they were read (the kernel's log).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub message: Option<String>,
}

/// A process by what tells it from others.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS, JsonSchema)]
pub struct ProcessRef {
    /// Its PID.
    pub pid: u32,
    /// As [`Process::name`](super::Process::name).
    pub name: Reading<String>,
    /// As [`Process::user`](super::Process::user).
    pub user: Reading<String>,
    /// As [`Process::started_ms`](super::Process::started_ms).
    pub started_ms: Reading<u64>,
}
