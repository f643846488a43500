//! nvidia-smi's subcommands: those that gpumon has, and the names of those that only NVIDIA's tool
//! has.

use super::{dmon, nvlink, pmon, subcommand::Subcommand, topo};

pub(super) static SUBCOMMANDS: [Subcommand; 4] = [
    Subcommand::new(&dmon::FORM, dmon::run),
    Subcommand::new(&pmon::FORM, pmon::run),
    Subcommand::new(&topo::FORM, topo::run),
    Subcommand::new(&nvlink::FORM, nvlink::run),
];

/// The subcommands of nvidia-smi 580 that gpumon does not have.
const HANDED_OVER: [&str; 19] = [
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

pub(crate) fn subcommand(name: &str) -> Option<&'static Subcommand> {
    SUBCOMMANDS
        .iter()
        .find(|subcommand| subcommand.form.name == name)
}

/// Returns whether NVIDIA's own nvidia-smi runs the subcommand of this name.
pub(crate) fn is_handed_over(name: &str) -> bool {
    HANDED_OVER.contains(&name)
}
