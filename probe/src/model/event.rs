//! Something that happened at a moment.

use serde::{Deserialize, Serialize};
use ts_rs::TS;

/// What happened, when, and to which GPU.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
pub struct Event {
    /// When it was noticed.
    pub at_ms: u64,
    /// The GPU it happened to; `None` where it concerns the machine.
    pub gpu: Option<GpuRef>,
    /// What.
    pub what: EventKind,
}

/// A GPU by its two names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
pub struct GpuRef {
    /// NVML's index.
    pub index: u32,
    /// Its UUID, where the driver has told it.
    pub uuid: Option<String>,
}

/// What happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
pub enum EventKind {
    /// The driver says that the GPU is gone (`NVML_ERROR_GPU_IS_LOST`).
    GpuLost,
    /// A call to the driver for this GPU has not come back.
    GpuHung,
    /// The driver refuses to open the GPU.
    GpuFailed,
    /// The GPU answers again.
    GpuBack,
}
