//! How a small subcommand is typed: its switches, its help, and what it refuses.

use gpumon_probe::vendor::nvml::query::QueryBackend;

use crate::{
    Refusal,
    select::select,
    subcommand::{Stop, Typing},
    switches::{Switch, Switches},
};

pub(super) struct Form {
    pub(super) name: &'static str,
    pub(super) help: &'static str,
    pub(super) switches: &'static [Switch],
    pub(super) changing: &'static [&'static str],
    /// The switches that show what NVML does not tell.
    pub(super) not_in_nvml: &'static [&'static str],
}

impl Form {
    pub(super) const fn new(name: &'static str, help: &'static str) -> Self {
        Self { name, help, switches: &[], changing: &[], not_in_nvml: &[] }
    }

    pub(super) const fn takes(self, switches: &'static [Switch]) -> Self {
        Self { switches, ..self }
    }

    pub(super) const fn changing(self, changing: &'static [&'static str]) -> Self {
        Self { changing, ..self }
    }

    pub(super) const fn not_in_nvml(self, not_in_nvml: &'static [&'static str]) -> Self {
        Self { not_in_nvml, ..self }
    }

    /// Reads what was typed. What stops it there: a fault, the help, a switch that is refused.
    pub(super) fn parse<'a>(&self, arguments: &'a [String]) -> Result<Switches<'a>, Stop> {
        let switches = Switches::parse(self.switches, arguments)?;
        if switches.has("-h") {
            return Err(self.explain());
        }
        if let Some(switch) = switches.first_of(self.changing) {
            return Err(Refusal::changes_the_gpu(&format!("{} {switch}", self.name)).into());
        }
        if let Some(switch) = switches.first_of(self.not_in_nvml) {
            return Err(Refusal::not_in_nvml(&format!("{} {switch}", self.name)).into());
        }
        Ok(switches)
    }

    /// How it is typed, for shells and manuals.
    pub(super) const fn typing(&self) -> Typing {
        Typing {
            switches: self.switches,
            refused: [self.changing, self.not_in_nvml],
            head: self.help,
            usage: self.help,
        }
    }

    /// The help, which is no failure.
    pub(super) fn explain(&self) -> Stop {
        Refusal::new(0, self.help).into()
    }

    /// Runs a subcommand of which NVML tells nothing.
    pub(super) fn only_explain(&self, arguments: &[String]) -> Result<u8, Stop> {
        self.parse(arguments)?;
        Err(self.explain())
    }

    /// The GPUs that `-i` names, or all.
    pub(super) fn gpus(switches: &Switches<'_>, driver: &dyn QueryBackend) -> Result<Vec<u32>, Refusal> {
        select(driver, switches.value("-i"))
    }
}
