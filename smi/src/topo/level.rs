//! The PCIe path between two devices, in nvidia-smi's words.

use gpumon_probe::model::PciPath;

/// The levels that `topo -n` accepts.
pub(super) const LEVELS: &[&str] = &["0", "1", "2", "3", "4", "5"];

/// Returns the path that a level of `-n` (0 to 5) stands for, and NVML's number for that level.
pub(super) fn find_path_of_level(number: i64) -> Option<(PciPath, u32)> {
    let number = u32::try_from(number).ok()?.checked_mul(10)?;
    PciPath::from_level(i128::from(number)).map(|path| (path, number))
}

pub(super) fn abbreviate_path(path: PciPath) -> &'static str {
    match path {
        PciPath::Internal | PciPath::Single => "PIX",
        PciPath::Multiple => "PXB",
        PciPath::HostBridge => "PHB",
        PciPath::Node => "NODE",
        PciPath::System => "SYS",
    }
}

/// Returns text for the longest path between two GPUs that a level allows.
pub(super) fn describe_longest_path(path: PciPath) -> String {
    match path {
        PciPath::Multiple => "by way of potentially multiple PCIe switches".to_owned(),
        PciPath::HostBridge => "by the same PCIe host bridge".to_owned(),
        PciPath::Node => "by way of an on-CPU interconnect between PCIe host bridges".to_owned(),
        path => format!("by way of {}", describe_path(path)),
    }
}

pub(super) fn describe_path(path: PciPath) -> &'static str {
    match path {
        PciPath::Internal => "an single on-board PCIe switch",
        PciPath::Single => "a single PCIe switch",
        PciPath::Multiple => "multiple PCIe switches",
        PciPath::HostBridge => "a PCIe host bridge",
        PciPath::Node => "an on-CPU interconnect link between PCIe host bridges",
        PciPath::System => "an SMP interconnect link between NUMA nodes",
    }
}
