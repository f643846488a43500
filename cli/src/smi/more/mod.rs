//! The small subcommands: what each shows, as far as it only reads and NVML tells it.

mod clocks;
mod conf_compute;
mod drain;
mod form;
mod mig;
mod monitors;
mod pci;
mod power;
mod sessions;
mod table;
mod vgpu;

use super::subcommand::Subcommand;

/// All of them.
pub(super) const SUBCOMMANDS: &[Subcommand] = &[
    Subcommand::new("mig", mig::run),
    Subcommand::new("conf-compute", conf_compute::run),
    Subcommand::new("pci", pci::run),
    Subcommand::new("c2c", pci::c2c),
    Subcommand::new("encodersessions", sessions::encoder),
    Subcommand::new("fbcsessions", sessions::capture),
    Subcommand::new("vgpu", vgpu::run),
    Subcommand::new("drain", drain::run),
    Subcommand::new("power-profiles", power::profiles),
    Subcommand::new("power-smoothing", power::smoothing),
    Subcommand::new("power-hint", power::hint),
    Subcommand::new("gpm", monitors::gpm),
    Subcommand::new("prm", monitors::prm),
    Subcommand::new("daemon", monitors::daemon),
    Subcommand::new("replay", monitors::replay),
    Subcommand::new("clocks", clocks::clocks),
    Subcommand::new("base-clocks", clocks::base),
    Subcommand::new("boost-slider", clocks::boost_slider),
    Subcommand::new("compute-policy", clocks::compute_policy),
];

#[cfg(test)]
mod tests;
