//! Settings: the table of keys, and the files, variables and flags that set them.
//!
//! - [`keys`] builds the table from the definitions of the command line: an option with a variable
//!   is a key. It also finds the origin of each value.
//! - [`parse`] reads one file, [`value`] converts a single value to arguments.
//! - [`command_line`] resolves a command line with and without files.
//! - [`edit`] writes values into a file and keeps the rest of it.
//!
//! Later sources override earlier ones: the system's file, the user's file, variables, flags.

mod command_line;
mod edit;
mod keys;
mod parse;
mod value;

use std::{
    ffi::OsString,
    io,
    path::{Path, PathBuf},
    sync::OnceLock,
};

use gpumon_probe::private_file::{FileError, PrivateFile, Secrecy};
use thiserror::Error;

use self::parse::Entry;
use crate::data_dir::find_folder;

#[cfg(test)]
pub(crate) use self::parse::Mistake;
pub(crate) use self::{
    command_line::{Refusal, Resolved, resolve},
    edit::write_table,
    keys::{Effective, Key, Keys, Origin, TABLES, effective},
    parse::{Parsed, parse},
    value::Wanted,
};

/// The settings of files that apply to all commands, by the name of the option.
static FOR_ALL: OnceLock<Vec<(String, OsString)>> = OnceLock::new();

/// Returns a setting that applies to all commands, from a variable or a file. Flags of the current
/// command are not considered, and an empty variable is ignored.
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

/// Stores the settings of files that apply to all commands. Only the first call has an effect.
fn remember(values: Vec<(String, OsString)>) {
    let _ = FOR_ALL.set(values);
}

/// Reads the files that [`find`] returns, with all their mistakes.
pub(crate) fn read(named: Option<&Path>) -> (Vec<(PathBuf, Parsed)>, Vec<Unreadable>) {
    let (files, unreadable) = find(named);
    let keys = Keys::new();
    let read = files.into_iter().map(|file| {
        let parsed = parse(&file, &keys);
        (file.path, parsed)
    });
    (read.collect(), unreadable)
}

/// Returns `true` if no settings file exists.
pub(crate) fn is_without_files(named: Option<&Path>) -> bool {
    let (files, unreadable) = find(named);
    files.is_empty() && unreadable.is_empty()
}

/// Returns the file that the screen's settings are written to: the named file, or else the user's.
pub(crate) fn written_path(named: Option<&Path>) -> Option<PathBuf> {
    match named.filter(|path| !path.as_os_str().is_empty()) {
        Some(path) if path == Path::new(NONE) => None,
        Some(path) => Some(path.to_owned()),
        None => usual_path(),
    }
}

/// Merges the entries of several files. A later file replaces entries with the same key, and
/// removes entries that conflict with its own.
fn merge(files: impl IntoIterator<Item = Vec<Entry>>) -> Vec<Entry> {
    let mut held: Vec<Entry> = Vec::new();
    for entries in files {
        held.retain(|before| !entries.iter().any(|entry| is_replaced(entry, before)));
        held.extend(entries);
    }
    held
}

fn is_replaced(entry: &Entry, before: &Entry) -> bool {
    let is_same = entry.key.full_name() == before.key.full_name();
    is_same
        || !entry.is_switched_off()
            && !before.is_switched_off()
            && entry.key.conflicts_with(&before.key)
}

/// The settings file for all users of this machine.
const SYSTEM: &str = "/etc/gpumon/config.toml";

/// The value of `--config` for no file.
const NONE: &str = "none";

#[derive(Debug, Clone)]
pub(crate) struct SettingsFile {
    pub(crate) path: PathBuf,
    pub(crate) text: String,
}

/// A file that exists but cannot be used.
#[derive(Debug, Error)]
#[error("{cause}{}", find_cure(cause))]
pub(crate) struct Unreadable {
    path: PathBuf,
    cause: FileError,
    /// Whether the file was named with `--config` or its variable.
    pub(crate) is_named: bool,
}

/// Returns the path of the user's settings file.
pub(crate) fn usual_path() -> Option<PathBuf> {
    Some(find_folder("XDG_CONFIG_HOME", ".config")?.join("gpumon/config.toml"))
}

/// Returns the settings files, in the order in which they apply: the named file, or else the
/// existing ones of the system and the user. If one of the two cannot be read, the other is still
/// used.
pub(crate) fn find(named: Option<&Path>) -> (Vec<SettingsFile>, Vec<Unreadable>) {
    match named.filter(|path| !path.as_os_str().is_empty()) {
        Some(path) if path == Path::new(NONE) => Default::default(),
        Some(path) => read_all(std::iter::once((path.to_owned(), true))),
        None => read_all(
            [Some(PathBuf::from(SYSTEM)), usual_path()]
                .into_iter()
                .flatten()
                .map(|path| (path, false)),
        ),
    }
}

fn read_all(paths: impl Iterator<Item = (PathBuf, bool)>) -> (Vec<SettingsFile>, Vec<Unreadable>) {
    let (mut files, mut unreadable) = (Vec::new(), Vec::new());
    for (path, is_named) in paths {
        match read_text(&path) {
            Ok(text) => files.push(SettingsFile { path, text }),
            Err(FileError::Unreadable(_, cause))
                if !is_named && is_out_of_reach(&path, cause.kind()) => {}
            Err(cause) => unreadable.push(Unreadable {
                path,
                cause,
                is_named,
            }),
        }
    }
    (files, unreadable)
}

/// Returns `true` if the file is missing, as far as this user can see. `sudo -u` may leave another
/// user's home directory in the environment, and that must not stop the command.
fn is_out_of_reach(path: &Path, cause: io::ErrorKind) -> bool {
    use io::ErrorKind::{NotADirectory, NotFound, PermissionDenied};
    matches!(cause, NotFound | NotADirectory)
        || cause == PermissionDenied && path.metadata().is_err()
}

/// Returns the text of a settings file. The file is refused if other users may write to it, because
/// settings decide what gpumon does.
fn read_text(path: &Path) -> Result<String, FileError> {
    Ok(PrivateFile::read(path, Secrecy::Public)?.text().to_owned())
}

fn find_cure(cause: &FileError) -> &'static str {
    let cause = match cause {
        FileError::Unreadable(_, cause) => cause,
        FileError::OfAnother { .. } => return ", or use no file with --config none",
        _ => return "",
    };
    match cause.kind() {
        io::ErrorKind::PermissionDenied => {
            "; let its reader read it, or name another file with --config"
        }
        io::ErrorKind::InvalidData => "; save it as UTF-8",
        _ => "; check the path",
    }
}

impl Unreadable {
    /// Returns `true` if the file was named and does not exist, but could be created.
    pub(crate) fn can_be_made(&self) -> bool {
        let folder = self
            .path
            .parent()
            .filter(|folder| !folder.as_os_str().is_empty());
        let is_missing = matches!(
            &self.cause,
            FileError::Unreadable(_, cause) if cause.kind() == io::ErrorKind::NotFound
        );
        self.is_named && is_missing && folder.is_none_or(Path::is_dir)
    }
}

#[cfg(test)]
mod tests;
