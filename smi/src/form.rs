//! The definition of a subcommand: its switches as listed in the help, their values, and those that
//! are refused.

use super::{
    Refusal, monitor,
    subcommand::Stop,
    switches::{self, Arity, Switch, Switches, UsageError, Values},
};

pub(crate) struct Form {
    pub(crate) name: &'static str,
    /// The text before the usage in a monitor's help. After a usage error, a monitor prints only
    /// the usage, with exit code 0.
    pub(crate) about: &'static str,
    pub(crate) usage: &'static str,
    /// The switches that require a value. `values` has those with completable values, and
    /// `may_take` those with an optional value.
    pub(crate) takes: &'static [&'static str],
    pub(crate) values: &'static [(&'static str, Values)],
    pub(crate) may_take: &'static [&'static str],
    pub(crate) changing: &'static [&'static str],
    /// Switches for output that only NVIDIA's own tool prints.
    pub(crate) handed_over: &'static [&'static str],
    pub(crate) deprecated: &'static [&'static str],
}

impl Form {
    pub(crate) const EMPTY: Self = Self {
        name: "",
        about: "",
        usage: "",
        takes: &[],
        values: &[],
        may_take: &[],
        changing: &[],
        handed_over: &[],
        deprecated: &[],
    };

    pub(crate) fn switches(&self) -> Vec<Switch> {
        let listed = self
            .usage
            .lines()
            .filter_map(|line| Some(switches::spellings(line)?.0.collect()));
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
        listed.map(switch).collect()
    }

    /// Returns `true` if a switch is always refused or ignored, so that completions leave it out.
    pub(crate) fn refuses(&self, switch: &str) -> bool {
        [self.changing, self.handed_over, self.deprecated]
            .iter()
            .any(|refused| refused.contains(&switch))
    }

    /// Parses the arguments. An error, a request for help or a refused switch stops the command.
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
        if let Some(switch) = switches.first_of(self.handed_over) {
            return Err(Refusal::handed_over(&format!("{} {switch}", self.name)).into());
        }
        Ok(switches)
    }

    pub(crate) fn help(&self) -> String {
        format!("{}{}", self.about, self.usage)
    }

    /// Returns the help, with exit code 0.
    pub(crate) fn explain(&self) -> Stop {
        Refusal::new(0, self.help()).into()
    }
}
