//! How a subcommand is typed: its switches, which its help lists, their values, and what is refused.

use gpumon_probe::vendor::nvml::query::QueryBackend;

use super::{
    Refusal, monitor,
    select::select,
    subcommand::Stop,
    switches::{self, Arity, Switch, Switches, UsageError, Values},
};

pub(crate) struct Form {
    pub(crate) name: &'static str,
    /// What stands in the help before the usage; the usage alone is shown where something was typed wrong.
    about: &'static str,
    pub(crate) usage: &'static str,
    /// The switches that a value follows, those of which a shell proposes values, and those that a value may follow.
    takes: &'static [&'static str],
    values: &'static [(&'static str, Values)],
    may_take: &'static [&'static str],
    /// Switches that the help does not list.
    unlisted: &'static [&'static [&'static str]],
    changing: &'static [&'static str],
    /// The switches that show what NVML does not tell.
    not_in_nvml: &'static [&'static str],
    deprecated: &'static [&'static str],
    /// Whether it is refused as a whole.
    pub(crate) is_refused: bool,
}

impl Form {
    pub(crate) const fn new(name: &'static str, usage: &'static str) -> Self {
        Self {
            name,
            about: "",
            usage,
            takes: &[],
            values: &[],
            may_take: &[],
            unlisted: &[],
            changing: &[],
            not_in_nvml: &[],
            deprecated: &[],
            is_refused: false,
        }
    }

    /// A monitor, which takes it for no failure where something was typed wrong.
    pub(crate) const fn monitor(self, about: &'static str) -> Self {
        Self { about, ..self }
    }

    pub(crate) const fn takes(self, takes: &'static [&'static str]) -> Self {
        Self { takes, ..self }
    }

    pub(crate) const fn values(self, values: &'static [(&'static str, Values)]) -> Self {
        Self { values, ..self }
    }

    pub(crate) const fn may_take(self, may_take: &'static [&'static str]) -> Self {
        Self { may_take, ..self }
    }

    pub(crate) const fn unlisted(self, unlisted: &'static [&'static [&'static str]]) -> Self {
        Self { unlisted, ..self }
    }

    pub(crate) const fn changing(self, changing: &'static [&'static str]) -> Self {
        Self { changing, ..self }
    }

    pub(crate) const fn not_in_nvml(self, not_in_nvml: &'static [&'static str]) -> Self {
        Self {
            not_in_nvml,
            ..self
        }
    }

    pub(crate) const fn deprecated(self, deprecated: &'static [&'static str]) -> Self {
        Self { deprecated, ..self }
    }

    pub(crate) const fn refused(self) -> Self {
        Self {
            is_refused: true,
            ..self
        }
    }

    pub(crate) fn switches(&self) -> Vec<Switch> {
        let listed = self
            .usage
            .lines()
            .filter_map(|line| Some(switches::spellings(line)?.0.collect()));
        let all = listed.chain(self.unlisted.iter().map(|spellings| spellings.to_vec()));
        let switch = |spellings: Vec<&'static str>| {
            let own = spellings[0];
            let (arity, values) = match self.values.iter().find(|(taking, _)| *taking == own) {
                Some((_, values)) => (Arity::Required, *values),
                None if self.takes.contains(&own) => (Arity::Required, Values::Any),
                None if self.may_take.contains(&own) => (Arity::Optional, Values::Any),
                None => (Arity::None, Values::Any),
            };
            Switch {
                spellings,
                arity,
                values,
            }
        };
        all.map(switch).collect()
    }

    /// Whether a switch shows nothing, so that it is not worth proposing.
    pub(crate) fn refuses(&self, switch: &str) -> bool {
        [self.changing, self.not_in_nvml, self.deprecated]
            .iter()
            .any(|refused| refused.contains(&switch))
    }

    /// Reads what was typed. What stops it there: a fault, the help, a switch that is refused.
    pub(crate) fn parse<'a>(&self, arguments: &'a [String]) -> Result<Switches<'a>, Stop> {
        let known = self.switches();
        let switches = Switches::parse(&known, arguments).map_err(|fault| {
            let is_changing = |typed: &str| {
                known.iter().any(|own| {
                    own.spellings.contains(&typed) && self.changing.contains(&own.spellings[0])
                })
            };
            let is_left = match fault {
                UsageError::Unknown(_) => true,
                UsageError::NoValue(switch) => is_changing(switch),
                UsageError::BadValue { .. } => false,
            };
            let refusal = if self.about.is_empty() {
                fault.into()
            } else {
                monitor::explain(fault, self.usage)
            };
            if is_left {
                refusal.left_to_nvidia_smi()
            } else {
                refusal
            }
        })?;
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

    pub(crate) fn help(&self) -> String {
        format!("{}{}", self.about, self.usage)
    }

    /// The help, which is no failure.
    pub(crate) fn explain(&self) -> Stop {
        Refusal::new(0, self.help()).into()
    }

    /// Runs a subcommand of which NVML tells nothing.
    pub(crate) fn only_explain(&self, arguments: &[String]) -> Result<u8, Stop> {
        self.parse(arguments)?;
        Err(self.explain())
    }

    /// The GPUs that `-i` names, or all.
    pub(crate) fn gpus(
        switches: &Switches<'_>,
        driver: &dyn QueryBackend,
    ) -> Result<Vec<u32>, Refusal> {
        select(driver, switches.value("-i"))
    }
}
