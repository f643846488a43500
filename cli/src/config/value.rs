//! Conversion of a single value between a settings file and the command line.

use std::{
    any::TypeId,
    error::Error,
    path::{Path, PathBuf},
};

use clap::{Arg, ArgAction, Command, error::ErrorKind};
use gpumon_workload::suggest::nearest;
use toml::de::DeValue;

use super::{NONE, keys::Key};

/// The type of a key's value in a settings file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wanted {
    Switch,
    Number,
    Text,
    /// A list of texts: an option that can be repeated.
    List,
    /// A list of numbers, which is one comma-separated value on the command line.
    Numbers,
}

impl Wanted {
    pub(super) fn by(arg: &Arg) -> Self {
        let is = |types: &[TypeId]| {
            types
                .iter()
                .any(|of| arg.get_value_parser().type_id() == *of)
        };
        let defaults = arg.get_default_values();
        let is_numeric = defaults.iter().all(|text| {
            text.to_str()
                .is_some_and(|text| text.parse::<f64>().is_ok())
        });
        if is(&[TypeId::of::<bool>()]) {
            Self::Switch
        } else if matches!(arg.get_action(), ArgAction::Append)
            || arg.get_value_delimiter().is_some()
        {
            Self::List
        } else if arg
            .get_value_names()
            .is_some_and(|names| names[0].contains(','))
        {
            Self::Numbers
        // A size such as `1GB` also has a numeric type, but its default is no number.
        } else if is_numeric
            && is(&[
                TypeId::of::<u16>(),
                TypeId::of::<u32>(),
                TypeId::of::<u64>(),
                TypeId::of::<f64>(),
            ])
        {
            Self::Number
        } else {
            Self::Text
        }
    }
}

impl Key {
    /// Converts a value of a settings file to arguments. The error is a hint for a correct value.
    /// Relative paths are resolved against `folder`, the directory of the file.
    pub(super) fn texts(&self, value: &DeValue<'_>, folder: &Path) -> Result<Vec<String>, String> {
        let texts = self.typed_texts(value).ok_or_else(|| self.usage())?;
        let texts: Vec<String> = texts
            .into_iter()
            .map(|text| self.in_folder(text, folder))
            .collect::<Result<_, _>>()?;
        match self.check(&texts) {
            Some(problem) => Err(problem),
            None => Ok(texts),
        }
    }

    fn typed_texts(&self, value: &DeValue<'_>) -> Option<Vec<String>> {
        let one = |text: String| Some(vec![text]);
        match self.wanted() {
            Wanted::Switch => one(value.as_bool()?.to_string()),
            Wanted::Number => one(number(value)?),
            Wanted::Text => one(value.as_str()?.to_owned()),
            Wanted::List => value
                .as_array()?
                .iter()
                .map(|one| one.get_ref().as_str().map(str::to_owned))
                .collect(),
            Wanted::Numbers => {
                let numbers: Option<Vec<String>> = value
                    .as_array()?
                    .iter()
                    .map(|one| number(one.get_ref()))
                    .collect();
                one(numbers?.join(","))
            }
        }
    }

    fn in_folder(&self, text: String, folder: &Path) -> Result<String, String> {
        let is_path = self.arg.get_value_parser().type_id() == TypeId::of::<PathBuf>();
        if !is_path || text == NONE || text.is_empty() {
            return Ok(text);
        }
        if text.starts_with('~') {
            return Err("write the whole path: no shell reads `~` here".to_owned());
        }
        Ok(folder.join(&text).to_string_lossy().into_owned())
    }

    /// Returns the option's own error for these values, if any.
    fn check(&self, texts: &[String]) -> Option<String> {
        // The parser is applied to a stand-in option, because the real one may require or exclude
        // other options.
        let arg = Arg::new("value")
            .long("value")
            .action(if self.wanted() == Wanted::Switch {
                ArgAction::Append
            } else {
                self.arg.get_action().clone()
            })
            .value_parser(self.arg.get_value_parser().clone());
        let words = texts.iter().map(|text| format!("--value={text}"));
        let error = Command::new("gpumon")
            .no_binary_name(true)
            .arg(arg)
            .try_get_matches_from(words)
            .err()?;
        Some(match (error.kind(), error.source()) {
            (ErrorKind::ValueValidation, Some(cause)) => cause.to_string(),
            _ => self.nearest(texts),
        })
    }

    /// Returns a hint with the choice most similar to a wrong value, or with all valid values.
    fn nearest(&self, texts: &[String]) -> String {
        let choices = self.choices();
        let words = texts.iter().filter(|_| self.wanted() != Wanted::Number);
        let wrong = words.into_iter().find(|text| !choices.contains(*text));
        let near =
            wrong.and_then(|text| Some((text, nearest(text, choices.iter().map(String::as_str))?)));
        near.map_or_else(
            || self.usage(),
            |(text, near)| format!("for `{text}`, did you mean `{near}`?"),
        )
    }

    /// Returns the names of the possible values, if the option has a fixed set.
    pub(crate) fn choices(&self) -> Vec<String> {
        let choices = self.arg.get_possible_values();
        choices
            .iter()
            .filter(|choice| !choice.is_hide_set())
            .map(|choice| choice.get_name().to_owned())
            .collect()
    }

    /// Returns a short hint for a correct value.
    pub(crate) fn usage(&self) -> String {
        let choices = self.choices();
        match self.wanted() {
            Wanted::Switch => "use true or false".to_owned(),
            Wanted::Text | Wanted::Number if !choices.is_empty() => {
                format!("use one of {}", choices.join(", "))
            }
            Wanted::List if !choices.is_empty() => {
                format!("use a list of some of {}", choices.join(", "))
            }
            Wanted::Text => format!("use a text, as {}", self.example()),
            Wanted::Number => format!("use a number, as {}", self.example()),
            Wanted::List | Wanted::Numbers => format!("use a list, as {}", self.example()),
        }
    }

    /// Returns the default in TOML, or else the placeholder for the value.
    pub(crate) fn example(&self) -> String {
        let defaults = self
            .arg
            .get_default_values()
            .iter()
            .map(|text| text.to_string_lossy().into_owned());
        let mut texts: Vec<String> = defaults.collect();
        if texts.is_empty() {
            let names = self.arg.get_value_names().unwrap_or_default().iter();
            texts.extend(if self.wanted() == Wanted::Switch {
                vec!["false".to_owned()]
            } else {
                names.map(ToString::to_string).collect()
            });
        }
        self.written(&texts)
    }

    /// Converts arguments to a value in TOML.
    pub(crate) fn written(&self, texts: &[String]) -> String {
        let first = texts.first().cloned().unwrap_or_default();
        match self.wanted() {
            Wanted::Switch | Wanted::Number => first,
            Wanted::Text => quoted(&first),
            Wanted::Numbers => format!("[{}]", first.split(',').collect::<Vec<_>>().join(", ")),
            Wanted::List => {
                let delimiter = self.arg.get_value_delimiter();
                let parts = texts.iter().flat_map(|text| match delimiter {
                    Some(delimiter) => text.split(delimiter).map(str::to_owned).collect(),
                    None => vec![text.clone()],
                });
                format!(
                    "[{}]",
                    parts
                        .map(|part| quoted(&part))
                        .collect::<Vec<_>>()
                        .join(", ")
                )
            }
        }
    }
}

/// Returns the text as a TOML string on one line.
fn quoted(text: &str) -> String {
    let mut quoted = String::from('"');
    for letter in text.chars() {
        match letter {
            '"' | '\\' => quoted.extend(['\\', letter]),
            letter if letter.is_control() => {
                quoted.extend(["\\u", &format!("{:04X}", u32::from(letter))]);
            }
            letter => quoted.push(letter),
        }
    }
    quoted + "\""
}

/// Returns a TOML number as an argument. Integers become decimal.
fn number(value: &DeValue<'_>) -> Option<String> {
    match value {
        DeValue::Integer(number) => Some(
            i64::from_str_radix(number.as_str(), number.radix())
                .ok()?
                .to_string(),
        ),
        DeValue::Float(number) => Some(number.as_str().to_owned()),
        _ => None,
    }
}
