//! All subcommands by name; and the small ones: what each shows, as far as it only reads and NVML tells it.

mod clocks;
mod conf_compute;
mod drain;
mod mig;
mod monitors;
mod pci;
mod power;
mod sessions;
mod table;
mod vgpu;

use super::{dmon, nvlink, pmon, subcommand::Subcommand, topo};

static SUBCOMMANDS: &[Subcommand] = &[
    Subcommand::new(&dmon::FORM, dmon::run),
    Subcommand::new(&pmon::FORM, pmon::run),
    Subcommand::new(&topo::FORM, topo::run),
    Subcommand::new(&nvlink::FORM, nvlink::run),
    Subcommand::new(&mig::FORM, mig::run),
    Subcommand::new(&conf_compute::FORM, conf_compute::run),
    Subcommand::new(&pci::PCI, pci::run),
    Subcommand::new(&pci::C2C, pci::c2c),
    Subcommand::new(&sessions::ENCODER, sessions::encoder),
    Subcommand::new(&sessions::CAPTURE, sessions::capture),
    Subcommand::new(&vgpu::FORM, vgpu::run),
    Subcommand::new(&drain::FORM, drain::run),
    Subcommand::new(&power::PROFILES, power::profiles),
    Subcommand::new(&power::SMOOTHING, power::smoothing),
    Subcommand::new(&power::HINT, |words, _, _| power::HINT.only_explain(words)),
    Subcommand::new(&monitors::GPM, monitors::gpm),
    Subcommand::new(&monitors::PRM, |words, _, _| {
        monitors::PRM.only_explain(words)
    }),
    Subcommand::new(&monitors::DAEMON, monitors::daemon),
    Subcommand::new(&monitors::REPLAY, monitors::replay),
    Subcommand::new(&clocks::CLOCKS, |words, _, _| {
        clocks::CLOCKS.only_explain(words)
    }),
    Subcommand::new(&clocks::BASE, clocks::base),
    Subcommand::new(&clocks::BOOST_SLIDER, |words, _, _| {
        clocks::BOOST_SLIDER.only_explain(words)
    }),
    Subcommand::new(&clocks::COMPUTE_POLICY, |words, _, _| {
        clocks::COMPUTE_POLICY.only_explain(words)
    }),
];

pub(super) fn all() -> impl Iterator<Item = &'static Subcommand> {
    SUBCOMMANDS.iter()
}

pub(crate) fn subcommand(name: &str) -> Option<&'static Subcommand> {
    all().find(|subcommand| subcommand.form.name == name)
}

#[cfg(test)]
mod tests;
