//! Parses the switches after a subcommand as nvidia-smi does.

use std::fmt;

/// A switch: its spellings, the main one first, whether a value follows, and which values are
/// allowed.
#[derive(Clone)]
pub(crate) struct Switch {
    pub(crate) spellings: Vec<&'static str>,
    pub(crate) arity: Arity,
    pub(crate) values: Values,
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum Values {
    /// Any value is allowed.
    Any,
    File,
    One(&'static [&'static str]),
    /// A comma-separated list of these values.
    Commas(fn() -> Vec<String>),
    /// Any of these letters.
    Letters(&'static str),
}

/// Whether a value follows a switch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arity {
    /// The switch takes no value.
    None,
    /// The next word is the value.
    Required,
    /// The next word is the value, unless it looks like another switch.
    Optional,
}

/// The typed switches, by their main spelling, with their values.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Switches<'a>(Vec<(&'static str, Option<&'a str>)>);

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum UsageError<'a> {
    Unknown(&'a str),
    NoValue(&'a str),
    BadValue { switch: &'a str, value: &'a str },
}

/// Returns the two spellings and the description in a line of the help, such as `[-i | --id]: GPUs
/// by index`. A missing short form is written as `N/A` or left empty.
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
    /// Parses the typed words. The value of a switch is the next word, or follows an equals sign.
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
                // A negative number is a value, but another switch is not.
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

    /// Returns the last typed value of a switch.
    pub(crate) fn value(&self, spelling: &str) -> Option<&'a str> {
        self.0
            .iter()
            .rev()
            .find(|(name, _)| *name == spelling)
            .and_then(|(_, value)| *value)
    }

    /// Returns the last typed value of a switch as a number.
    pub(crate) fn number(&self, switch: &'static str) -> Result<Option<i64>, UsageError<'a>> {
        self.value(switch)
            .map(|value| {
                value
                    .parse()
                    .map_err(|_| UsageError::BadValue { switch, value })
            })
            .transpose()
    }

    /// Returns the first typed switch among those given.
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
