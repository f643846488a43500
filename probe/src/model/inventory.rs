//! What is there: read once, and again whenever it changes.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use ts_rs::TS;

use super::{Board, GpuLink, Health, MigDevice, Playback, Reading};

/// The machine, its driver and its GPUs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS, JsonSchema)]
pub struct Inventory {
    /// When it was read.
    pub at_ms: u64,
    /// The machine's host name.
    pub hostname: String,
    /// The driver and library that the readings come from.
    pub platform: Platform,
    /// Every GPU the driver lists, in the driver's order; a lost one keeps its place.
    pub gpus: Vec<Gpu>,
    /// Which GPUs are linked by what: one entry per pair, the lower index first. Empty until it is known.
    #[serde(default)]
    pub topology: Vec<GpuLink>,
    /// Where all of this is played from a recording, and is not how things are now: how it is played.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub playback: Option<Playback>,
}

/// Where readings come from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS, JsonSchema)]
pub struct Platform {
    /// Real or simulated; whatever shows a simulated value says so.
    pub source: SourceKind,
    /// `nvmlSystemGetDriverVersion`, as `580.159.04`.
    pub driver_version: Reading<String>,
    /// `nvmlSystemGetNVMLVersion`, as `13.580.159.04`.
    pub nvml_version: Reading<String>,
    /// `nvmlSystemGetCudaDriverVersion_v2`: the newest CUDA this driver runs, as `13.0`.
    pub cuda_version: Reading<String>,
}

impl Platform {
    /// Whether no GPU is behind the readings.
    pub fn is_simulated(&self) -> bool {
        self.source == SourceKind::Simulated
    }
}

/// The kind of source.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SourceKind {
    /// NVIDIA's driver, through NVML.
    Nvml,
    /// The built-in simulation.
    Simulated,
}

/// A GPU that an earlier collector has read. The next collector keeps its index, even if the GPU is
/// gone.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct KnownGpu {
    /// The GPU's identity.
    pub gpu: Gpu,
    /// The GPU's last known health.
    pub health: Health,
}

/// One GPU's identity and what never changes about it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS, JsonSchema)]
pub struct Gpu {
    /// NVML's index when the GPU was first read. It never changes, even when another GPU is lost,
    /// added or removed.
    pub index: u32,
    /// `nvmlDeviceGetUUID`; `None` while the driver has not told it (a GPU that was lost or hung from the start).
    pub uuid: Option<String>,
    /// `nvmlDeviceGetName`, as `NVIDIA H200`.
    pub name: Reading<String>,
    /// `nvmlDeviceGetPciInfo_v3`, as `00000000:00:06.0`.
    pub pci_bus_id: Reading<String>,
    /// The rest of what never changes.
    pub board: Board,
    /// Its MIG devices; empty where MIG is off. They change while the driver runs, which makes a new inventory.
    #[serde(default)]
    pub mig_devices: Vec<MigDevice>,
}
