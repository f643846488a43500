//! The list of all settings keys, derived from the definitions of the command line.

use std::{env, ffi::OsString};

use clap::{Arg, ArgMatches, Command, Id, parser::ValueSource};
use serde::Serialize;

use super::{
    command_line::{Refusal, find_leaf_matches, resolve_command_line},
    value::ValueType,
};
use crate::grammar;

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
        let gpumon = grammar::build_command();
        let mut keys = list_keys(&gpumon, None);
        for table in TABLES {
            let command = gpumon.find_subcommand(table).into_iter();
            let own = command.flat_map(|command| list_keys(command, Some(table)));
            // An option of `gpumon` itself is not repeated in a command's table. An option that
            // several commands share is a key only in the first of their tables.
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

    pub(crate) fn variable(&self) -> String {
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
    let resolved = resolve_command_line(&grammar::build_command(), words)?;
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
            let set = resolved
                .entries
                .iter()
                .find(|entry| entry.key.full_name() == key.full_name());
            let from_file = set.map(|entry| Origin::File {
                path: entry.origin.clone(),
                line: entry.line,
            });
            let value = format_value(key, all);
            let origin = match typed.value_source(key.arg.get_id().as_str()) {
                Some(ValueSource::CommandLine) => Origin::Flag {
                    name: format!("--{}", key.name()),
                },
                _ if is_variable_set(key) && !is_overruled(key, typed) => Origin::Variable {
                    name: key.variable(),
                },
                // A file is the origin of a value only if the value is in effect. The value of a
                // file is ignored if it conflicts with a flag or a variable.
                _ if set
                    .is_some_and(|entry| value.as_deref() == Some(&key.to_toml(&entry.texts))) =>
                {
                    from_file.unwrap_or(Origin::Default)
                }
                _ => Origin::Default,
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
    env::var_os(key.variable()).is_some_and(|value| !value.is_empty())
}

/// Returns `true` if the key's variable is ignored because it conflicts with a typed flag.
fn is_overruled(key: &Key, typed: &ArgMatches) -> bool {
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
