//! The definition of a subcommand: the switches in its help, their values, and the switches that
//! are refused.

use super::{
    Refusal, monitor,
    subcommand::SubcommandError,
    switches::{self, AllowedValues, Arity, Switch, Switches, UsageError},
};

pub(crate) struct SubcommandSyntax {
    pub(crate) name: &'static str,
    /// The text before the usage in a monitor's help. After a usage error, a monitor prints only
    /// the usage, and the exit code is 0.
    pub(crate) about: &'static str,
    pub(crate) usage: &'static str,
    /// The switches that require a value. `values` lists those that shell completion supports, and
    /// `may_take` lists the switches whose value is optional.
    pub(crate) takes: &'static [&'static str],
    pub(crate) values: &'static [(&'static str, AllowedValues)],
    pub(crate) may_take: &'static [&'static str],
    pub(crate) changing: &'static [&'static str],
    /// Switches whose output only NVIDIA's own tool can print.
    pub(crate) handed_over: &'static [&'static str],
    pub(crate) deprecated: &'static [&'static str],
}

impl SubcommandSyntax {
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
            .filter_map(|line| Some(switches::parse_spellings(line)?.0.collect()));
        let switch = |spellings: Vec<&'static str>| {
            let own = spellings[0];
            let (arity, values) = match self.values.iter().find(|(taking, _)| *taking == own) {
                Some((_, values)) => (Arity::Required, *values),
                None if self.takes.contains(&own) => (Arity::Required, AllowedValues::Any),
                None if self.may_take.contains(&own) => (Arity::Optional, AllowedValues::Any),
                None => (Arity::None, AllowedValues::Any),
            };
            Switch {
                spellings,
                arity,
                values,
            }
        };
        listed.map(switch).collect()
    }

    /// Returns `true` if a switch is always refused or ignored. Shell completion leaves out such
    /// switches.
    pub(crate) fn is_refused(&self, switch: &str) -> bool {
        [self.changing, self.handed_over, self.deprecated]
            .iter()
            .any(|refused| refused.contains(&switch))
    }

    /// Parses the arguments. An error, a request for help, or a refused switch ends the command.
    pub(crate) fn parse<'a>(
        &self,
        arguments: &'a [String],
    ) -> Result<Switches<'a>, SubcommandError> {
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
                monitor::make_usage_refusal(fault, self.usage)
            };
            if is_left {
                refusal.leave_to_nvidia_smi()
            } else {
                refusal
            }
        })?;
        if switches.contains("-h") {
            return Err(self.help_as_error());
        }
        if let Some(switch) = switches.first_of(self.changing) {
            return Err(Refusal::new_gpu_change(&format!("{} {switch}", self.name)).into());
        }
        if let Some(switch) = switches.first_of(self.handed_over) {
            return Err(Refusal::new_handed_over(&format!("{} {switch}", self.name)).into());
        }
        Ok(switches)
    }

    pub(crate) fn help(&self) -> String {
        format!("{}{}", self.about, self.usage)
    }

    /// Returns the help text, with exit code 0.
    pub(crate) fn help_as_error(&self) -> SubcommandError {
        Refusal::new(0, self.help()).into()
    }
}
