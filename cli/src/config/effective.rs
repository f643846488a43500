//! Which value each key has, and where it comes from.

use std::{env, ffi::OsString};

use clap::{ArgMatches, parser::ValueSource};
use serde::Serialize;

use super::{
    command_line::{Refusal, leaf_matches, resolve},
    keys::{Key, Keys},
};
use crate::grammar;

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
    /// As it would stand in a file; `None` where it has no value.
    pub(crate) value: Option<String>,
    pub(crate) origin: Origin,
}

/// The keys that a command line uses, with their values.
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

/// Whether a flag was typed that the variable cannot be used with.
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
