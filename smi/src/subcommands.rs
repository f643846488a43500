//! nvidia-smi's subcommands: those that gpumon supports, and the names of those that only NVIDIA's
//! own tool supports.

use super::{dmon, nvlink, pmon, subcommand::Subcommand, topo};

pub(super) static SUBCOMMANDS: [Subcommand; 4] = [
    Subcommand::new(&dmon::SYNTAX, dmon::run),
    Subcommand::new(&pmon::SYNTAX, pmon::run),
    Subcommand::new(&topo::SYNTAX, topo::run),
    Subcommand::new(&nvlink::SYNTAX, nvlink::run),
];

/// The nvidia-smi 580 subcommands that gpumon does not support.
const HANDED_OVER_SUBCOMMANDS: [&str; 19] = [
    "base-clocks",
    "boost-slider",
    "c2c",
    "clocks",
    "compute-policy",
    "conf-compute",
    "daemon",
    "drain",
    "encodersessions",
    "fbcsessions",
    "gpm",
    "mig",
    "pci",
    "power-hint",
    "power-profiles",
    "power-smoothing",
    "prm",
    "replay",
    "vgpu",
];

pub(crate) fn find_subcommand(name: &str) -> Option<&'static Subcommand> {
    SUBCOMMANDS
        .iter()
        .find(|subcommand| subcommand.form.name == name)
}

/// Returns `true` if NVIDIA's own nvidia-smi must run the subcommand `name`.
pub(crate) fn is_handed_over(name: &str) -> bool {
    HANDED_OVER_SUBCOMMANDS.contains(&name)
}
