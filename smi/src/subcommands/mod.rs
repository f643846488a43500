//! All subcommands by name; and the small ones: what each shows, as far as it only reads and NVML tells it.

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

use super::{
    dmon, nvlink, pmon,
    subcommand::{Subcommand, Typing},
    topo,
};

const SUBCOMMANDS: &[Subcommand] = &[
    Subcommand::new("dmon", dmon::run, dmon::TYPING),
    Subcommand::new("pmon", pmon::run, pmon::TYPING),
    Subcommand::new("topo", topo::run, topo::TYPING),
    Subcommand::new("nvlink", nvlink::run, nvlink::TYPING),
    Subcommand::new("mig", mig::run, mig::FORM.typing()),
    Subcommand::new("conf-compute", conf_compute::run, conf_compute::FORM.typing()),
    Subcommand::new("pci", pci::run, pci::PCI.typing()),
    Subcommand::new("c2c", pci::c2c, pci::C2C.typing()),
    Subcommand::new("encodersessions", sessions::encoder, sessions::ENCODER.typing()),
    Subcommand::new("fbcsessions", sessions::capture, sessions::CAPTURE.typing()),
    // What a host shows of its virtual GPUs is left to NVIDIA's own tool.
    Subcommand::new("vgpu", vgpu::run, Typing::NONE),
    Subcommand::new("drain", drain::run, drain::FORM.typing()),
    Subcommand::new("power-profiles", power::profiles, power::PROFILES.typing()),
    Subcommand::new("power-smoothing", power::smoothing, power::SMOOTHING.typing()),
    Subcommand::new("power-hint", |words, _, _| power::HINT.only_explain(words), power::HINT.typing()),
    Subcommand::new("gpm", monitors::gpm, monitors::GPM.typing()),
    Subcommand::new("prm", |words, _, _| monitors::PRM.only_explain(words), monitors::PRM.typing()),
    Subcommand::new("daemon", monitors::daemon, Typing::NONE),
    Subcommand::new("replay", monitors::replay, Typing::NONE),
    Subcommand::new("clocks", |words, _, _| clocks::CLOCKS.only_explain(words), clocks::CLOCKS.typing()),
    Subcommand::new("base-clocks", clocks::base, clocks::BASE.typing()),
    Subcommand::new(
        "boost-slider",
        |words, _, _| clocks::BOOST_SLIDER.only_explain(words),
        clocks::BOOST_SLIDER.typing(),
    ),
    Subcommand::new(
        "compute-policy",
        |words, _, _| clocks::COMPUTE_POLICY.only_explain(words),
        clocks::COMPUTE_POLICY.typing(),
    ),
];

pub(super) fn all() -> impl Iterator<Item = &'static Subcommand> {
    SUBCOMMANDS.iter()
}

pub(crate) fn subcommand(name: &str) -> Option<&'static Subcommand> {
    all().find(|subcommand| subcommand.name == name)
}

#[cfg(test)]
mod tests;
