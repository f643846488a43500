//! The PCIe distance between two devices, in nvidia-smi's words.

use gpumon_probe::model::PciPath;

/// The levels that `-n` accepts.
pub(super) const TYPED: &[&str] = &["0", "1", "2", "3", "4", "5"];

/// Returns the path for a level of `-n` (0 to 5), and NVML's number for it.
pub(super) fn typed(number: i64) -> Option<(PciPath, u32)> {
    let number = u32::try_from(number).ok()?.checked_mul(10)?;
    PciPath::from_level(i128::from(number)).map(|path| (path, number))
}

pub(super) fn short(path: PciPath) -> &'static str {
    match path {
        PciPath::Internal | PciPath::Single => "PIX",
        PciPath::Multiple => "PXB",
        PciPath::HostBridge => "PHB",
        PciPath::Node => "NODE",
        PciPath::System => "SYS",
    }
}

/// Returns the words for the longest path that a level allows between two GPUs.
pub(super) fn way_between(path: PciPath) -> String {
    match path {
        PciPath::Multiple => "by way of potentially multiple PCIe switches".to_owned(),
        PciPath::HostBridge => "by the same PCIe host bridge".to_owned(),
        PciPath::Node => "by way of an on-CPU interconnect between PCIe host bridges".to_owned(),
        path => format!("by way of {}", way(path)),
    }
}

pub(super) fn way(path: PciPath) -> &'static str {
    match path {
        PciPath::Internal => "an single on-board PCIe switch",
        PciPath::Single => "a single PCIe switch",
        PciPath::Multiple => "multiple PCIe switches",
        PciPath::HostBridge => "a PCIe host bridge",
        PciPath::Node => "an on-CPU interconnect link between PCIe host bridges",
        PciPath::System => "an SMP interconnect link between NUMA nodes",
    }
}
