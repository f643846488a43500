//! The definition of a subcommand, which consists of its syntax and its function, and the parsing
//! of its switches.

use std::{
    fmt,
    io::{self, Write},
};

use gpumon_probe::vendor::nvml::query::QueryBackend;

use super::{Refusal, monitor};

/// A subcommand's syntax and function.
pub(crate) struct Subcommand {
    pub(super) syntax: &'static SubcommandSyntax,
    run: SubcommandFunction,
}

/// A function that runs a subcommand with its arguments and returns the exit code.
pub(super) type SubcommandFunction =
    fn(&[String], &dyn QueryBackend, &mut dyn Write) -> Result<u8, SubcommandError>;

/// The reason why a subcommand has ended early.
#[derive(Debug)]
pub(super) enum SubcommandError {
    Refused(Refusal),
    /// The output could not be written.
    Output(io::Error),
}

impl Subcommand {
    pub(super) const fn new(syntax: &'static SubcommandSyntax, run: SubcommandFunction) -> Self {
        Self { syntax, run }
    }

    /// Runs the subcommand until it ends, or until SIGINT ends the process. As in nvidia-smi, a
    /// refusal is written to the output, unless NVIDIA's own tool takes over. A closed pipe is not
    /// an error.
    pub(crate) fn run(
        &self,
        arguments: &[String],
        driver: &dyn QueryBackend,
        output: &mut dyn Write,
    ) -> Result<u8, SubcommandError> {
        let ended = (self.run)(arguments, driver, output).or_else(|stop| match stop {
            SubcommandError::Refused(refusal) if !refusal.is_left_to_nvidia_smi => Ok(output
                .write_all(refusal.text.as_bytes())
                .map(|()| refusal.code)?),
            stop => Err(stop),
        });
        match ended.and_then(|code| Ok(output.flush().map(|()| code)?)) {
            Err(SubcommandError::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => {
                Ok(0)
            }
            ended => ended,
        }
    }
}

impl SubcommandError {
    pub(super) fn is_left_to_nvidia_smi(&self) -> bool {
        matches!(
            self,
            Self::Refused(Refusal {
                is_left_to_nvidia_smi: true,
                ..
            })
        )
    }
}

impl From<Refusal> for SubcommandError {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

impl From<io::Error> for SubcommandError {
    fn from(error: io::Error) -> Self {
        Self::Output(error)
    }
}

impl From<UsageError<'_>> for Refusal {
    fn from(fault: UsageError<'_>) -> Self {
        Self::new(2, format!("{fault}\n"))
    }
}

impl From<UsageError<'_>> for SubcommandError {
    fn from(fault: UsageError<'_>) -> Self {
        Self::Refused(fault.into())
    }
}

/// A subcommand's syntax: the switches in its help, their values, and the switches that are
/// refused.
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
            .filter_map(|line| Some(parse_spellings(line)?.0.collect()));
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
                Refusal::from(fault)
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
        if let Some(switch) = switches.find_first_typed(self.changing) {
            return Err(Refusal::new_gpu_change(&format!("{} {switch}", self.name)).into());
        }
        if let Some(switch) = switches.find_first_typed(self.handed_over) {
            return Err(Refusal::new_nvidia_only(&format!("{} {switch}", self.name)).into());
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

// Parsing of the switches after a subcommand, in the same way as in nvidia-smi.

/// A switch: its forms (starting with the main form), whether it takes a value, and which values
/// are allowed.
#[derive(Clone)]
pub(crate) struct Switch {
    pub(crate) spellings: Vec<&'static str>,
    pub(crate) arity: Arity,
    pub(crate) values: AllowedValues,
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum AllowedValues {
    /// Any value is allowed.
    Any,
    File,
    One(&'static [&'static str]),
    /// A comma-separated list of these values.
    Commas(fn() -> Vec<String>),
    /// A combination of these letters, without separators.
    Letters(&'static str),
}

/// Whether a switch takes a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arity {
    /// The switch takes no value.
    None,
    /// The next word is the switch's value.
    Required,
    /// The next word is the switch's value, unless it looks like another switch.
    Optional,
}

/// The switches that were typed, identified by their main forms, with their values.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Switches<'a>(Vec<(&'static str, Option<&'a str>)>);

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum UsageError<'a> {
    Unknown(&'a str),
    NoValue(&'a str),
    BadValue { switch: &'a str, value: &'a str },
}

/// Returns the two forms and the description in a help line such as `[-i | --id]: GPUs by index`. A
/// missing short form is written as `N/A` or left empty.
pub(crate) fn parse_spellings(line: &str) -> Option<(impl Iterator<Item = &str>, &str)> {
    let (names, about) = line.trim().strip_prefix('[')?.split_once("]:")?;
    Some((
        names
            .split('|')
            .map(str::trim)
            .filter(|name| !["", "N/A"].contains(name)),
        about,
    ))
}

impl<'a> Switches<'a> {
    /// Parses the typed words. A switch's value is the next word, or the text after an equals sign.
    pub(crate) fn parse(known: &[Switch], arguments: &'a [String]) -> Result<Self, UsageError<'a>> {
        let find = |word: &str| known.iter().find(|switch| switch.spellings.contains(&word));
        let mut typed = Vec::new();
        let mut words = arguments.iter().map(String::as_str).peekable();
        while let Some(word) = words.next() {
            let (spelling, attached) = word
                .split_once('=')
                .map_or((word, None), |(spelling, value)| (spelling, Some(value)));
            let switch = find(spelling).ok_or(UsageError::Unknown(word))?;
            let value = match switch.arity {
                Arity::None if attached.is_some() => return Err(UsageError::Unknown(word)),
                Arity::None => None,
                // A word that starts with a minus sign can be a value if it is a negative number,
                // but not if it is another switch.
                Arity::Required | Arity::Optional => {
                    attached.or_else(|| words.next_if(|next| find(next).is_none()))
                }
            };
            if switch.arity == Arity::Required && value.is_none() {
                return Err(UsageError::NoValue(spelling));
            }
            typed.push((switch.spellings[0], value));
        }
        Ok(Self(typed))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn contains(&self, spelling: &str) -> bool {
        self.0.iter().any(|(name, _)| *name == spelling)
    }

    /// Returns the value of a switch. If the switch was typed several times, the last value is
    /// returned.
    pub(crate) fn value(&self, spelling: &str) -> Option<&'a str> {
        self.0
            .iter()
            .rev()
            .find(|(name, _)| *name == spelling)
            .and_then(|(_, value)| *value)
    }

    /// Returns the value of a switch as a number. If the switch was typed several times, the last
    /// value is returned.
    pub(crate) fn parse_number(&self, switch: &'static str) -> Result<Option<i64>, UsageError<'a>> {
        self.value(switch)
            .map(|value| {
                value
                    .parse()
                    .map_err(|_| UsageError::BadValue { switch, value })
            })
            .transpose()
    }

    /// Returns the first of the typed switches that is among `spellings`.
    pub(crate) fn find_first_typed(&self, spellings: &[&'static str]) -> Option<&'static str> {
        self.0
            .iter()
            .map(|(name, _)| *name)
            .find(|name| spellings.contains(name))
    }
}

impl fmt::Display for UsageError<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown(word) => write!(f, "Option \"{word}\" is not recognized."),
            Self::NoValue(switch) => write!(f, "Option \"{switch}\" is missing its value."),
            Self::BadValue { switch, value } => {
                write!(f, "Option \"{value}\" is invalid for \"{switch}\".")
            }
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::{
        command_line::{find_subcommand, is_nvidia_only_subcommand},
        tests::scripted::ScriptedBackend,
    };

    /// Runs a subcommand line, and returns its output and exit code.
    pub(crate) fn run_line(line: &str, driver: &dyn QueryBackend) -> (String, u8) {
        let mut words = line.split_whitespace().map(str::to_owned);
        let subcommand = find_subcommand(&words.next().unwrap()).unwrap();
        let mut output = Vec::new();
        let code = match subcommand.run(&words.collect::<Vec<_>>(), driver, &mut output) {
            Ok(code) => code,
            Err(SubcommandError::Refused(refusal)) => {
                output.extend(refusal.text.bytes());
                refusal.code
            }
            Err(SubcommandError::Output(error)) => panic!("{error}"),
        };
        (String::from_utf8(output).unwrap(), code)
    }

    struct ClosedPipe;

    impl Write for ClosedPipe {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::ErrorKind::BrokenPipe.into())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn closed_pipe_is_not_reported_as_failure() {
        let driver = ScriptedBackend::default();
        for name in ["topo", "nvlink", "pmon", "dmon"] {
            let code = find_subcommand(name)
                .unwrap()
                .run(&["-h".to_owned()], &driver, &mut ClosedPipe)
                .unwrap();
            assert_eq!(code, 0, "{name}");
        }
    }

    #[test]
    fn unknown_name_does_not_match_subcommand() {
        assert!(find_subcommand("bogus").is_none() && find_subcommand("mig").is_none());
        assert!(is_nvidia_only_subcommand("mig") && !is_nvidia_only_subcommand("dmon"));
    }

    #[test]
    fn every_subcommand_has_help() {
        let driver = ScriptedBackend::default();
        for (name, code_of_fault) in [("dmon", 0), ("pmon", 0), ("topo", 2), ("nvlink", 2)] {
            let (help, code) = run_line(&format!("{name} -h"), &driver);
            assert!(
                help.contains("[-h | --help]:") && code == 0,
                "{name}: {help}"
            );
            let (text, code) = run_line(&format!("{name} --bogus"), &driver);
            assert!(
                text.starts_with("Option \"--bogus\" is not recognized.\n"),
                "{name}: {text}"
            );
            assert_eq!(code, code_of_fault, "{name}");
        }
    }

    #[test]
    fn options_reserved_for_real_nvidia_smi_are_refused() {
        for (line, reason) in [
            ("nvlink -re", "changes the GPU, which gpumon never does"),
            ("nvlink -ec", "is not part of gpumon"),
        ] {
            let text = format!("gpumon: '{line}' {reason}; use NVIDIA's own nvidia-smi for it\n");
            assert_eq!(run_line(line, &ScriptedBackend::default()), (text, 3));
        }
    }
}

#[cfg(test)]
mod switches_tests {
    use super::*;

    fn known_switches() -> Vec<Switch> {
        let switch = |spellings: &[&'static str], arity| Switch {
            spellings: spellings.to_vec(),
            arity,
            values: AllowedValues::Any,
        };
        vec![
            switch(&["-s", "--status"], Arity::None),
            switch(&["-l", "--link"], Arity::Required),
            switch(&["-g"], Arity::Optional),
        ]
    }

    fn split_words(text: &str) -> Vec<String> {
        text.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn option_value_is_parsed_in_every_notation() {
        for text in ["-l 1", "--link 1", "--link=1", "-l=1"] {
            let typed = split_words(text);
            let switches = Switches::parse(&known_switches(), &typed).unwrap();
            assert_eq!(switches.parse_number("-l"), Ok(Some(1)), "{text}");
        }
        let typed = split_words("-l -1 -g -s");
        let switches = Switches::parse(&known_switches(), &typed).unwrap();
        assert_eq!(switches.parse_number("-l"), Ok(Some(-1)));
        assert!(switches.contains("-s"));
        assert_eq!(switches.value("-g"), None);
        assert_eq!(switches.find_first_typed(&["-s", "-g"]), Some("-g"));
    }

    #[test]
    fn error_messages_match_nvidia_smi() {
        for (text, message) in [
            ("bogus", "Option \"bogus\" is not recognized."),
            ("--status=1", "Option \"--status=1\" is not recognized."),
            ("-s -l", "Option \"-l\" is missing its value."),
            ("-l -s", "Option \"-l\" is missing its value."),
        ] {
            assert_eq!(
                Switches::parse(&known_switches(), &split_words(text))
                    .unwrap_err()
                    .to_string(),
                message
            );
        }
        let typed = split_words("-l x");
        let fault = Switches::parse(&known_switches(), &typed)
            .unwrap()
            .parse_number("-l")
            .unwrap_err();
        assert_eq!(fault.to_string(), "Option \"x\" is invalid for \"-l\".");
    }
}
