//! How a subcommand is typed: its switches, which its help lists, their values, and what is
//! refused.

use super::{
    Refusal, monitor,
    subcommand::Stop,
    switches::{self, Arity, Switch, Switches, UsageError, Values},
};

pub(crate) struct Form {
    pub(crate) name: &'static str,
    /// The text before the usage in the help of a monitor. The usage alone is shown where something
    /// was typed wrong, which is no failure of a monitor.
    pub(crate) about: &'static str,
    pub(crate) usage: &'static str,
    /// The switches that a value follows, those with values that a shell proposes, and those that a
    /// value may follow.
    pub(crate) takes: &'static [&'static str],
    pub(crate) values: &'static [(&'static str, Values)],
    pub(crate) may_take: &'static [&'static str],
    pub(crate) changing: &'static [&'static str],
    /// The switches with what only NVIDIA's own tool shows.
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

    /// Whether a switch shows nothing, so that it is not worth proposing.
    pub(crate) fn refuses(&self, switch: &str) -> bool {
        [self.changing, self.handed_over, self.deprecated]
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
        if let Some(switch) = switches.first_of(self.handed_over) {
            return Err(Refusal::handed_over(&format!("{} {switch}", self.name)).into());
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
}
