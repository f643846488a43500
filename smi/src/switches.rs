//! What was typed after a subcommand, as nvidia-smi's subcommands read it.

use std::fmt;

/// A switch: how it is spelled, its own spelling first, whether a value follows, and which ones
/// there are.
#[derive(Clone)]
pub(crate) struct Switch {
    pub(crate) spellings: Vec<&'static str>,
    pub(crate) arity: Arity,
    pub(crate) values: Values,
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum Values {
    /// None in particular.
    Any,
    File,
    One(&'static [&'static str]),
    /// Any of these, separated by commas.
    Commas(fn() -> Vec<String>),
    /// Any of these letters.
    Letters(&'static str),
}

/// Whether a value follows a switch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arity {
    /// None.
    None,
    /// One.
    Required,
    /// The next word, unless it looks like another switch.
    Optional,
}

/// The switches that were typed, by their own spelling, with their values.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Switches<'a>(Vec<(&'static str, Option<&'a str>)>);

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum UsageError<'a> {
    Unknown(&'a str),
    NoValue(&'a str),
    BadValue { switch: &'a str, value: &'a str },
}

/// The spellings that a line of a help is about: `[-i | --id]: GPUs by index`. What has no short
/// form has `N/A` or nothing in its place.
pub(crate) fn spellings(line: &str) -> Option<(impl Iterator<Item = &str>, &str)> {
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
    /// Reads what was typed. A value stands in the next word, or behind an equals sign.
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
                // A number below zero is a value, another switch is not.
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

    pub(crate) fn has(&self, spelling: &str) -> bool {
        self.0.iter().any(|(name, _)| *name == spelling)
    }

    /// The value that was typed last for a switch.
    pub(crate) fn value(&self, spelling: &str) -> Option<&'a str> {
        self.0
            .iter()
            .rev()
            .find(|(name, _)| *name == spelling)
            .and_then(|(_, value)| *value)
    }

    /// The number that was typed last for a switch.
    pub(crate) fn number(&self, switch: &'static str) -> Result<Option<i64>, UsageError<'a>> {
        self.value(switch)
            .map(|value| {
                value
                    .parse()
                    .map_err(|_| UsageError::BadValue { switch, value })
            })
            .transpose()
    }

    /// The first of these switches that was typed.
    pub(crate) fn first_of(&self, spellings: &[&'static str]) -> Option<&'static str> {
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
mod tests {
    use super::*;

    fn known() -> Vec<Switch> {
        let switch = |spellings: &[&'static str], arity| Switch {
            spellings: spellings.to_vec(),
            arity,
            values: Values::Any,
        };
        vec![
            switch(&["-s", "--status"], Arity::None),
            switch(&["-l", "--link"], Arity::Required),
            switch(&["-g"], Arity::Optional),
        ]
    }

    fn words(text: &str) -> Vec<String> {
        text.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn a_value_stands_behind_its_switch() {
        for text in ["-l 1", "--link 1", "--link=1", "-l=1"] {
            let typed = words(text);
            let switches = Switches::parse(&known(), &typed).unwrap();
            assert_eq!(switches.number("-l"), Ok(Some(1)), "{text}");
        }
        let typed = words("-l -1 -g -s");
        let switches = Switches::parse(&known(), &typed).unwrap();
        assert_eq!(switches.number("-l"), Ok(Some(-1)));
        assert!(switches.has("-s"));
        assert_eq!(switches.value("-g"), None);
        assert_eq!(switches.first_of(&["-s", "-g"]), Some("-g"));
    }

    #[test]
    fn faults_are_told_in_the_words_of_nvidia_smi() {
        for (text, message) in [
            ("bogus", "Option \"bogus\" is not recognized."),
            ("--status=1", "Option \"--status=1\" is not recognized."),
            ("-s -l", "Option \"-l\" is missing its value."),
            ("-l -s", "Option \"-l\" is missing its value."),
        ] {
            assert_eq!(
                Switches::parse(&known(), &words(text))
                    .unwrap_err()
                    .to_string(),
                message
            );
        }
        let typed = words("-l x");
        let fault = Switches::parse(&known(), &typed)
            .unwrap()
            .number("-l")
            .unwrap_err();
        assert_eq!(fault.to_string(), "Option \"x\" is invalid for \"-l\".");
    }
}
