//! The one table of keys, made of the definitions of the command line.

use std::{env, ffi::OsString};

use clap::{Arg, ArgMatches, Command, Id, parser::ValueSource};
use serde::Serialize;

use super::{
    command_line::{Refusal, leaf_matches, resolve},
    value::Wanted,
};
use crate::grammar;

/// The commands whose options have a table of their own in the file.
pub(crate) const TABLES: [&str; 3] = ["serve", "fleet", "top"];

/// An option that names the file itself, and so cannot stand in it.
const CONFIG: &str = "config";

/// One key: an option that has a variable.
#[derive(Debug, Clone)]
pub(crate) struct Key {
    /// The table that it stands in; `None` before the first one, for options of `gpumon` itself.
    pub(crate) table: Option<&'static str>,
    pub(crate) arg: Arg,
    /// Options that it cannot be used with.
    pub(crate) conflicts: Vec<Id>,
}

#[derive(Debug, Clone)]
pub(crate) struct Keys(Vec<Key>);

impl Keys {
    pub(crate) fn new() -> Self {
        let gpumon = grammar::command();
        let mut keys = keys_of(&gpumon, None);
        for table in TABLES {
            let command = gpumon.find_subcommand(table).into_iter();
            let own = command.flat_map(|command| keys_of(command, Some(table)));
            // What `gpumon` has itself holds for every command, and what two commands have stands
            // in the table of one.
            let own: Vec<Key> = own
                .filter(|key| !keys.iter().any(|known| known.is_same(&key.arg)))
                .collect();
            keys.extend(own);
        }
        Self(keys)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Key> {
        self.0.iter()
    }

    pub(crate) fn of(&self, table: Option<&str>) -> impl Iterator<Item = &Key> {
        self.0.iter().filter(move |key| key.table == table)
    }

    pub(crate) fn get(&self, table: Option<&str>, name: &str) -> Option<&Key> {
        self.of(table).find(|key| key.name() == name)
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

    pub(crate) fn wanted(&self) -> Wanted {
        Wanted::by(&self.arg)
    }

    /// With the table that it stands in.
    pub(crate) fn full_name(&self) -> String {
        self.table.map_or_else(
            || self.name().to_owned(),
            |table| format!("{table}.{}", self.name()),
        )
    }

    /// Whether an option of some command is this one.
    pub(crate) fn is_same(&self, arg: &Arg) -> bool {
        self.arg.get_long() == arg.get_long() && self.arg.get_env() == arg.get_env()
    }

    pub(crate) fn conflicts_with(&self, other: &Self) -> bool {
        let names = |a: &Self, b: &Self| a.table == b.table && a.conflicts.contains(b.arg.get_id());
        names(self, other) || names(other, self)
    }
}

fn keys_of(command: &Command, table: Option<&'static str>) -> Vec<Key> {
    let keys = command.get_arguments().filter(|arg| {
        arg.get_long().is_some_and(|name| name != CONFIG)
            && arg.get_env().is_some()
            && !arg.is_hide_set()
    });
    keys.map(|arg| Key {
        table,
        arg: arg.clone(),
        conflicts: conflicts_of(command, arg),
    })
    .collect()
}

/// Those that it names itself.
pub(super) fn conflicts_of(command: &Command, arg: &Arg) -> Vec<Id> {
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
pub(crate) struct Effective {
    pub(crate) key: Key,
    /// The value in the form of a file; `None` if there is none.
    pub(crate) value: Option<String>,
    pub(crate) origin: Origin,
}

/// Returns the settings that apply to a command line, with their values.
pub(crate) fn effective(words: &[OsString]) -> Result<Vec<Effective>, Refusal> {
    let resolved = resolve(&grammar::command(), words)?;
    let (all, typed) = (
        leaf_matches(&resolved.matches),
        leaf_matches(&resolved.typed),
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
            let value = value(key, all);
            let origin = match typed.value_source(key.arg.get_id().as_str()) {
                Some(ValueSource::CommandLine) => Origin::Flag {
                    name: format!("--{}", key.name()),
                },
                _ if is_set(key) && !is_overruled(key, typed) => Origin::Variable {
                    name: key.variable(),
                },
                // One that contradicts what is typed is left out.
                _ if set
                    .is_some_and(|entry| value.as_deref() == Some(&key.written(&entry.texts))) =>
                {
                    from_file.unwrap_or(Origin::Default)
                }
                _ => Origin::Default,
            };
            Effective {
                key: key.clone(),
                value,
                origin,
            }
        })
        .collect())
}

fn is_set(key: &Key) -> bool {
    env::var_os(key.variable()).is_some_and(|value| !value.is_empty())
}

/// Returns whether a flag was typed that the variable cannot be used with.
fn is_overruled(key: &Key, typed: &ArgMatches) -> bool {
    key.wanted() != super::Wanted::Switch
        && typed.value_source(key.arg.get_id().as_str()) != Some(ValueSource::EnvVariable)
}

fn value(key: &Key, matches: &ArgMatches) -> Option<String> {
    let raw = matches
        .try_get_raw(key.arg.get_id().as_str())
        .ok()
        .flatten()?;
    let texts: Vec<String> = raw
        .map(|text| text.to_string_lossy().into_owned())
        .collect();
    Some(key.written(&texts))
}
