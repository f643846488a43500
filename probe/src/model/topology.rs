//! How two GPUs are linked.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use ts_rs::TS;

use super::Reading;

/// Two GPUs and what lies between them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS, JsonSchema)]
pub struct GpuLink {
    /// The lower index.
    pub a: u32,
    /// The higher index.
    pub b: u32,
    /// The way through PCI Express (`nvmlDeviceGetTopologyCommonAncestor`).
    pub path: Reading<PciPath>,
    /// Active NVLinks between the two, through switches or not; 0 where there are none.
    pub nvlinks: Reading<u32>,
}

/// The way between two GPUs through PCI Express, the nearest first; in brackets what `nvidia-smi topo -m` writes.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, TS, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum PciPath {
    /// Two GPUs on one board.
    Internal,
    /// One PCIe switch (`PIX`).
    Single,
    /// Several PCIe switches, no host bridge (`PXB`).
    Multiple,
    /// A host bridge (`PHB`).
    HostBridge,
    /// Several host bridges of one NUMA node (`NODE`).
    Node,
    /// The link between NUMA nodes (`SYS`).
    System,
}

impl PciPath {
    /// The path of a number of `nvmlGpuTopologyLevel_t`.
    pub fn from_level(level: i128) -> Option<Self> {
        match level {
            0 => Some(Self::Internal),
            10 => Some(Self::Single),
            20 => Some(Self::Multiple),
            30 => Some(Self::HostBridge),
            40 => Some(Self::Node),
            50 => Some(Self::System),
            _ => None,
        }
    }
}
