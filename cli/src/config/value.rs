//! Conversion of a single value between a settings file and the command line.

use std::{
    any::TypeId,
    error::Error,
    path::{Path, PathBuf},
};

use clap::{Arg, ArgAction, Command, error::ErrorKind};
use gpumon_workload::suggest::find_nearest;
use toml::de::DeValue;

use super::{NO_FILE, keys::Key};

/// The type of a key's value in a settings file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ValueType {
    Switch,
    Number,
    Text,
    /// A list of strings, from an option that can be repeated.
    List,
    /// A list of numbers, which is a single comma-separated argument on the command line.
    Numbers,
}

impl ValueType {
    pub(super) fn from_argument(arg: &Arg) -> Self {
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
        // An option for a size also has a numeric type, but its default, such as `1GB`, is not a
        // number.
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
    /// Converts a value from a settings file to arguments. The error is a hint for a correct value.
    /// Relative paths are resolved against `folder`, the directory that contains the file.
    pub(super) fn to_arguments(
        &self,
        value: &DeValue<'_>,
        folder: &Path,
    ) -> Result<Vec<String>, String> {
        let texts = self.convert_value(value).ok_or_else(|| self.usage())?;
        let texts: Vec<String> = texts
            .into_iter()
            .map(|text| self.resolve_path(text, folder))
            .collect::<Result<_, _>>()?;
        match self.find_problem(&texts) {
            Some(problem) => Err(problem),
            None => Ok(texts),
        }
    }

    fn convert_value(&self, value: &DeValue<'_>) -> Option<Vec<String>> {
        let one = |text: String| Some(vec![text]);
        match self.value_type() {
            ValueType::Switch => one(value.as_bool()?.to_string()),
            ValueType::Number => one(parse_number(value)?),
            ValueType::Text => one(value.as_str()?.to_owned()),
            ValueType::List => value
                .as_array()?
                .iter()
                .map(|one| one.get_ref().as_str().map(str::to_owned))
                .collect(),
            ValueType::Numbers => {
                let numbers: Option<Vec<String>> = value
                    .as_array()?
                    .iter()
                    .map(|one| parse_number(one.get_ref()))
                    .collect();
                one(numbers?.join(","))
            }
        }
    }

    fn resolve_path(&self, text: String, folder: &Path) -> Result<String, String> {
        let is_path = self.arg.get_value_parser().type_id() == TypeId::of::<PathBuf>();
        if !is_path || text == NO_FILE || text.is_empty() {
            return Ok(text);
        }
        if text.starts_with('~') {
            return Err("use the full path, because `~` is not expanded".to_owned());
        }
        Ok(folder.join(&text).to_string_lossy().into_owned())
    }

    /// Returns the error of the option's parser for the values `texts`, if any.
    fn find_problem(&self, texts: &[String]) -> Option<String> {
        // The parser is used with a temporary option, because the real option may require or
        // exclude other options.
        let arg = Arg::new("value")
            .long("value")
            .action(if self.value_type() == ValueType::Switch {
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
            _ => self.suggest_choice(texts),
        })
    }

    /// Returns a hint with the choice most similar to the wrong value, or with all choices.
    fn suggest_choice(&self, texts: &[String]) -> String {
        let choices = self.choices();
        let words = texts
            .iter()
            .filter(|_| self.value_type() != ValueType::Number);
        let wrong = words.into_iter().find(|text| !choices.contains(*text));
        let near = wrong.and_then(|text| {
            Some((
                text,
                find_nearest(text, choices.iter().map(String::as_str))?,
            ))
        });
        near.map_or_else(
            || self.usage(),
            |(text, near)| format!("unknown value `{text}`; did you mean `{near}`?"),
        )
    }

    /// Returns the names of the option's possible values, or an empty list if any value is
    /// possible.
    pub(crate) fn choices(&self) -> Vec<String> {
        let choices = self.arg.get_possible_values();
        choices
            .iter()
            .filter(|choice| !choice.is_hide_set())
            .map(|choice| choice.get_name().to_owned())
            .collect()
    }

    /// Returns a short hint that describes correct values.
    pub(crate) fn usage(&self) -> String {
        let choices = self.choices();
        match self.value_type() {
            ValueType::Switch => "use true or false".to_owned(),
            ValueType::Text | ValueType::Number if !choices.is_empty() => {
                format!("use one of {}", choices.join(", "))
            }
            ValueType::List if !choices.is_empty() => {
                format!("use a list with one or more of {}", choices.join(", "))
            }
            ValueType::Text => format!("use a string, such as {}", self.example()),
            ValueType::Number => format!("use a number, such as {}", self.example()),
            ValueType::List | ValueType::Numbers => {
                format!("use a list, such as {}", self.example())
            }
        }
    }

    /// Returns the default as TOML, or the placeholder for the value if the option has no default.
    pub(crate) fn example(&self) -> String {
        let defaults = self
            .arg
            .get_default_values()
            .iter()
            .map(|text| text.to_string_lossy().into_owned());
        let mut texts: Vec<String> = defaults.collect();
        if texts.is_empty() {
            let names = self.arg.get_value_names().unwrap_or_default().iter();
            texts.extend(if self.value_type() == ValueType::Switch {
                vec!["false".to_owned()]
            } else {
                names.map(ToString::to_string).collect()
            });
        }
        self.to_toml(&texts)
    }

    /// Converts arguments to a TOML value.
    pub(crate) fn to_toml(&self, texts: &[String]) -> String {
        let first = texts.first().cloned().unwrap_or_default();
        match self.value_type() {
            ValueType::Switch | ValueType::Number => first,
            ValueType::Text => quote_toml(&first),
            ValueType::Numbers => format!("[{}]", first.split(',').collect::<Vec<_>>().join(", ")),
            ValueType::List => {
                let delimiter = self.arg.get_value_delimiter();
                let parts = texts.iter().flat_map(|text| match delimiter {
                    Some(delimiter) => text.split(delimiter).map(str::to_owned).collect(),
                    None => vec![text.clone()],
                });
                format!(
                    "[{}]",
                    parts
                        .map(|part| quote_toml(&part))
                        .collect::<Vec<_>>()
                        .join(", ")
                )
            }
        }
    }
}

/// Quotes text as a TOML string on one line.
fn quote_toml(text: &str) -> String {
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

/// Converts a TOML number to an argument. Integers are written in decimal.
fn parse_number(value: &DeValue<'_>) -> Option<String> {
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
