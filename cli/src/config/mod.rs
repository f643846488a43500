//! Settings: one table of keys, and the files, variables and flags that set them.
//!
//! - [`keys`] is the table, made of the definitions of the command line: an option with a variable is a key.
//! - [`files`] are the files, [`parse`] what one of them says, [`value`] what a single value is to the command line.
//! - [`merge`] is what holds of several files and of what was typed, [`command_line`] reads a command line with it,
//!   [`typed`] one without.
//! - [`edit`] writes values into a file and keeps the rest of it; [`effective`] says where each value comes from.
//!
//! The later of these wins: the system's file, the user's, a variable, a flag.

mod command_line;
mod edit;
mod effective;
mod files;
mod keys;
mod merge;
mod parse;
mod typed;
mod value;

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
    sync::OnceLock,
};

pub(crate) use self::{
    command_line::{Refusal, Resolved, resolve},
    edit::write_table,
    effective::{Effective, Origin, effective},
    files::{Unreadable, find, usual_path},
    keys::{Key, Keys, TABLES},
    parse::{Parsed, parse},
    value::Wanted,
};
#[cfg(test)]
pub(crate) use self::{files::SettingsFile, parse::Mistake};

/// What the files say for all commands, by the name of the option.
static FOR_ALL: OnceLock<Vec<(String, OsString)>> = OnceLock::new();

/// What is set for all commands, by a variable or a file; what is typed for one command is not among it. A variable that is
/// set to nothing sets nothing.
pub(crate) fn for_all(variable: &str, name: &str) -> Option<OsString> {
    let set = std::env::var_os(variable).filter(|value| !value.is_empty());
    let in_file = || {
        FOR_ALL
            .get()?
            .iter()
            .find(|(known, _)| known == name)
            .map(|(_, value)| value.clone())
    };
    set.or_else(in_file)
}

/// Remembers what files say for all commands; the first time counts.
fn remember(values: Vec<(String, OsString)>) {
    let _ = FOR_ALL.set(values);
}

/// Reads the files that [`find`] returns, with everything that is wrong with them.
pub(crate) fn read(named: Option<&Path>) -> (Vec<(PathBuf, Parsed)>, Vec<Unreadable>) {
    let (files, unreadable) = find(named);
    let keys = Keys::new();
    let read = files.into_iter().map(|file| {
        let parsed = parse(&file, &keys);
        (file.path, parsed)
    });
    (read.collect(), unreadable)
}

/// Whether there is no file to be read.
pub(crate) fn is_without_files(named: Option<&Path>) -> bool {
    let (files, unreadable) = find(named);
    files.is_empty() && unreadable.is_empty()
}

/// The file that the screen's settings are written to: the one that was named, or else the user's.
pub(crate) fn written_path(named: Option<&Path>) -> Option<PathBuf> {
    match named.filter(|path| !path.as_os_str().is_empty()) {
        Some(path) if path == Path::new(files::NONE) => None,
        Some(path) => Some(path.to_owned()),
        None => usual_path(),
    }
}

#[cfg(test)]
mod tests;
