//! The list of all settings keys, derived from the definitions of the command line. It also
//! determines where each value comes from, and converts values.

use std::{
    any::TypeId,
    env,
    error::Error,
    ffi::OsString,
    path::{Path, PathBuf},
};

use clap::{Arg, ArgAction, ArgMatches, Command, Id, error::ErrorKind, parser::ValueSource};
use gpumon_workload::suggest::find_nearest;
use serde::Serialize;
use toml::de::DeValue;

use super::{
    NO_FILE,
    command_line::{Refusal, find_leaf_matches, resolve_command_line},
};
use crate::command_definition;

/// The commands with a separate table in the settings file.
pub(crate) const TABLES: [&str; 3] = ["serve", "fleet", "top"];

/// The option that names the settings file. It cannot be a key in the file.
const CONFIG_OPTION: &str = "config";

/// A settings key: an option that also has an environment variable.
#[derive(Debug, Clone)]
pub(crate) struct Key {
    /// The key's table in the file, or `None` for options of `gpumon` itself, which come before the
    /// first table.
    pub(crate) table: Option<&'static str>,
    pub(crate) arg: Arg,
    /// The options that conflict with this option.
    pub(crate) conflicts: Vec<Id>,
}

#[derive(Debug, Clone)]
pub(crate) struct Keys(Vec<Key>);

impl Keys {
    pub(crate) fn new() -> Self {
        let gpumon = command_definition::build_command();
        let mut keys = list_keys(&gpumon, None);
        for table in TABLES {
            let command = gpumon.find_subcommand(table).into_iter();
            let own = command.flat_map(|command| list_keys(command, Some(table)));
            // A key that is already in the list is not added again. An option of `gpumon` itself is
            // therefore a key only outside of tables, and an option that several commands share is
            // a key only in the first of their tables.
            let own: Vec<Key> = own
                .filter(|key| !keys.iter().any(|known| known.matches_argument(&key.arg)))
                .collect();
            keys.extend(own);
        }
        Self(keys)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Key> {
        self.0.iter()
    }

    pub(crate) fn iter_table(&self, table: Option<&str>) -> impl Iterator<Item = &Key> {
        self.0.iter().filter(move |key| key.table == table)
    }

    pub(crate) fn get(&self, table: Option<&str>, name: &str) -> Option<&Key> {
        self.iter_table(table).find(|key| key.name() == name)
    }
}

impl Key {
    pub(crate) fn name(&self) -> &str {
        self.arg.get_long().unwrap_or_default()
    }

    pub(crate) fn variable_name(&self) -> String {
        self.arg
            .get_env()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned()
    }

    pub(crate) fn help(&self) -> String {
        self.arg
            .get_help()
            .map(ToString::to_string)
            .unwrap_or_default()
    }

    pub(crate) fn value_type(&self) -> ValueType {
        ValueType::from_argument(&self.arg)
    }

    /// Returns the key's name with its table, such as `serve.listen`.
    pub(crate) fn full_name(&self) -> String {
        self.table.map_or_else(
            || self.name().to_owned(),
            |table| format!("{table}.{}", self.name()),
        )
    }

    /// Returns `true` if this key sets the argument `arg` of a command.
    pub(crate) fn matches_argument(&self, arg: &Arg) -> bool {
        self.arg.get_long() == arg.get_long() && self.arg.get_env() == arg.get_env()
    }

    pub(crate) fn conflicts_with(&self, other: &Self) -> bool {
        let names = |a: &Self, b: &Self| a.table == b.table && a.conflicts.contains(b.arg.get_id());
        names(self, other) || names(other, self)
    }
}

fn list_keys(command: &Command, table: Option<&'static str>) -> Vec<Key> {
    let keys = command.get_arguments().filter(|arg| {
        arg.get_long().is_some_and(|name| name != CONFIG_OPTION)
            && arg.get_env().is_some()
            && !arg.is_hide_set()
    });
    keys.map(|arg| Key {
        table,
        arg: arg.clone(),
        conflicts: list_conflicts(command, arg),
    })
    .collect()
}

/// Returns the options that are declared to conflict with `arg`.
pub(super) fn list_conflicts(command: &Command, arg: &Arg) -> Vec<Id> {
    if arg.is_global_set() {
        return Vec::new();
    }
    command
        .get_arg_conflicts_with(arg)
        .into_iter()
        .map(|other| other.get_id().clone())
        .collect()
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(crate) enum Origin {
    Default,
    File { path: String, line: usize },
    Variable { name: String },
    Flag { name: String },
}

#[derive(Debug)]
pub(crate) struct EffectiveSetting {
    pub(crate) key: Key,
    /// The value in TOML; `None` if the key has no value.
    pub(crate) value: Option<String>,
    pub(crate) origin: Origin,
}

/// Returns the settings that apply to a command line, with their values and origins.
pub(crate) fn resolve_settings(words: &[OsString]) -> Result<Vec<EffectiveSetting>, Refusal> {
    let resolved = resolve_command_line(&command_definition::build_command(), words)?;
    let (all, typed) = (
        find_leaf_matches(&resolved.matches),
        find_leaf_matches(&resolved.typed),
    );
    let has = |key: &Key| all.try_get_raw(key.arg.get_id().as_str()).is_ok();
    let command = resolved.matches.subcommand_name().map(str::to_owned);
    let keys = Keys::new();
    let used = keys
        .iter()
        .filter(|key| (key.table.is_none() || key.table == command.as_deref()) && has(key));
    Ok(used
        .map(|key| {
            let value = format_value(key, all);
            // A file is reported as the origin only if its value is in effect and not overruled by
            // a conflicting flag or variable.
            let set = resolved.entries.iter().find(|entry| {
                entry.key.full_name() == key.full_name()
                    && value.as_deref() == Some(&key.to_toml(&entry.texts))
            });
            let origin = match typed.value_source(key.arg.get_id().as_str()) {
                Some(ValueSource::CommandLine) => Origin::Flag {
                    name: format!("--{}", key.name()),
                },
                _ if is_variable_set(key) && !is_variable_overruled(key, typed) => {
                    Origin::Variable {
                        name: key.variable_name(),
                    }
                }
                _ => set.map_or(Origin::Default, |entry| Origin::File {
                    path: entry.origin.clone(),
                    line: entry.line,
                }),
            };
            EffectiveSetting {
                key: key.clone(),
                value,
                origin,
            }
        })
        .collect())
}

fn is_variable_set(key: &Key) -> bool {
    env::var_os(key.variable_name()).is_some_and(|value| !value.is_empty())
}

/// Returns `true` if the key's variable is ignored because it conflicts with a typed flag.
fn is_variable_overruled(key: &Key, typed: &ArgMatches) -> bool {
    key.value_type() != super::ValueType::Switch
        && typed.value_source(key.arg.get_id().as_str()) != Some(ValueSource::EnvVariable)
}

fn format_value(key: &Key, matches: &ArgMatches) -> Option<String> {
    let raw = matches
        .try_get_raw(key.arg.get_id().as_str())
        .ok()
        .flatten()?;
    let texts: Vec<String> = raw
        .map(|text| text.to_string_lossy().into_owned())
        .collect();
    Some(key.to_toml(&texts))
}

// Conversion of a single value between a settings file and the command line.

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
        // Options for a size have a numeric type as well, but their values are text such as `1GB`.
        // An option therefore counts as a number only if its default is a number too.
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
    /// Converts a value from a settings file to command-line arguments. Relative paths are resolved
    /// against `folder`, the directory that contains the file. If the value is invalid, the error
    /// is a hint that describes valid values.
    pub(super) fn to_arguments(
        &self,
        value: &DeValue<'_>,
        folder: &Path,
    ) -> Result<Vec<String>, String> {
        let texts = self
            .convert_value(value)
            .ok_or_else(|| self.describe_valid_values())?;
        let texts: Vec<String> = texts
            .into_iter()
            .map(|text| self.resolve_path(text, folder))
            .collect::<Result<_, _>>()?;
        match self.find_value_error(&texts) {
            Some(problem) => Err(problem),
            None => Ok(texts),
        }
    }

    fn convert_value(&self, value: &DeValue<'_>) -> Option<Vec<String>> {
        let one = |text: String| Some(vec![text]);
        match self.value_type() {
            ValueType::Switch => one(value.as_bool()?.to_string()),
            ValueType::Number => one(number_to_argument(value)?),
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
                    .map(|one| number_to_argument(one.get_ref()))
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
    fn find_value_error(&self, texts: &[String]) -> Option<String> {
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
            || self.describe_valid_values(),
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
    pub(crate) fn describe_valid_values(&self) -> String {
        let choices = self.choices();
        match self.value_type() {
            ValueType::Switch => "use true or false".to_owned(),
            ValueType::Text | ValueType::Number if !choices.is_empty() => {
                format!("use one of {}", choices.join(", "))
            }
            ValueType::List if !choices.is_empty() => {
                format!("use a list with one or more of {}", choices.join(", "))
            }
            ValueType::Text => format!("use a string, such as {}", self.example_value()),
            ValueType::Number => format!("use a number, such as {}", self.example_value()),
            ValueType::List | ValueType::Numbers => {
                format!("use a list, such as {}", self.example_value())
            }
        }
    }

    /// Returns the default as TOML, or the placeholder for the value if the option has no default.
    pub(crate) fn example_value(&self) -> String {
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
fn number_to_argument(value: &DeValue<'_>) -> Option<String> {
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
