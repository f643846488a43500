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

/// The way between two GPUs through PCI Express, the nearest first; in brackets what `nvidia-smi
/// topo -m` writes.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, TS, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum PciPath {
    /// Two GPUs on one board.
    Internal = 0,
    /// One PCIe switch (`PIX`).
    Single = 10,
    /// Several PCIe switches, no host bridge (`PXB`).
    Multiple = 20,
    /// A host bridge (`PHB`).
    HostBridge = 30,
    /// Several host bridges of one NUMA node (`NODE`).
    Node = 40,
    /// The link between NUMA nodes (`SYS`).
    System = 50,
}

impl PciPath {
    const ALL: [Self; 6] = [
        Self::Internal,
        Self::Single,
        Self::Multiple,
        Self::HostBridge,
        Self::Node,
        Self::System,
    ];

    /// Returns the path with this number of `nvmlGpuTopologyLevel_t`.
    pub fn from_level(level: i128) -> Option<Self> {
        Self::ALL.into_iter().find(|path| *path as i128 == level)
    }
}
