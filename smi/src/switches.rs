//! Parsing of the switches after a subcommand, in the same way as in nvidia-smi.

use std::fmt;

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
    fn value_follows_its_switch() {
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
        assert_eq!(switches.first_of(&["-s", "-g"]), Some("-g"));
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
