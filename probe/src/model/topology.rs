//! Links between GPUs.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use ts_rs::TS;

use super::Reading;

/// The links between two GPUs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS, JsonSchema)]
pub struct GpuLink {
    /// The lower index of the two GPUs.
    pub a: u32,
    /// The higher index of the two GPUs.
    pub b: u32,
    /// The path through PCI Express (`nvmlDeviceGetTopologyCommonAncestor`).
    pub path: Reading<PciPath>,
    /// The number of active NVLinks between the two GPUs, directly or through switches.
    pub nvlinks: Reading<u32>,
}

/// The path between two GPUs through PCI Express, from the shortest to the longest; in parentheses
/// the abbreviation of `nvidia-smi topo -m`.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, TS, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum PciPath {
    /// Both GPUs are on one board.
    Internal = 0,
    /// The path crosses one PCIe switch (`PIX`).
    Single = 10,
    /// The path crosses several PCIe switches, but no host bridge (`PXB`).
    Multiple = 20,
    /// The path crosses a host bridge (`PHB`).
    HostBridge = 30,
    /// The path crosses several host bridges of one NUMA node (`NODE`).
    Node = 40,
    /// The path crosses the link between NUMA nodes (`SYS`).
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

    /// Returns the path for a value of `nvmlGpuTopologyLevel_t`.
    pub fn from_level(level: i128) -> Option<Self> {
        Self::ALL.into_iter().find(|path| *path as i128 == level)
    }
}
