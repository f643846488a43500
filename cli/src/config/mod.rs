//! Settings: the table of keys, and the files, variables and flags that set them.
//!
//! - [`keys`] builds the table from the definitions of the command line. Each option with a
//!   variable is a key. It also converts single values to arguments, and finds the origin of each
//!   value.
//! - [`file`](mod@file) parses a file, and writes values into a file.
//! - [`command_line`] resolves a command line with and without files.
//!
//! Later sources override earlier ones: the system's file, the user's file, variables, flags.

mod command_line;
mod file;
mod keys;

use std::{
    ffi::OsString,
    io,
    path::{Path, PathBuf},
    sync::OnceLock,
};

use gpumon_probe::private_file::{PrivateFile, PrivateFileError, Secrecy};
use thiserror::Error;

use self::file::Entry;
use crate::data_dir::find_xdg_folder;

#[cfg(test)]
pub(crate) use self::file::Mistake;
pub(crate) use self::{
    command_line::{Refusal, ResolvedArguments, resolve_command_line},
    file::{ParsedFile, parse, write_table},
    keys::{EffectiveSetting, Key, Keys, Origin, TABLES, ValueType, resolve_settings},
};

/// Those values from the settings files that apply to all commands: pairs of an option's name and
/// its value.
static GENERAL_SETTINGS: OnceLock<Vec<(String, OsString)>> = OnceLock::new();

/// Returns a setting that applies to all commands, from a variable or a file. Flags of the current
/// command are not considered, and an empty variable is ignored.
pub(crate) fn find_general_setting(variable: &str, name: &str) -> Option<OsString> {
    let set = std::env::var_os(variable).filter(|value| !value.is_empty());
    let in_file = || {
        GENERAL_SETTINGS
            .get()?
            .iter()
            .find(|(known, _)| known == name)
            .map(|(_, value)| value.clone())
    };
    set.or_else(in_file)
}

/// Stores those values from the settings files that apply to all commands. Only the first call has
/// an effect.
fn store_general_settings(values: Vec<(String, OsString)>) {
    let _ = GENERAL_SETTINGS.set(values);
}

/// Reads and parses the files that [`read_applicable_files`] returns. Each parsed file includes all
/// its mistakes.
pub(crate) fn read_and_parse_files(
    named: Option<&Path>,
) -> (Vec<(PathBuf, ParsedFile)>, Vec<UnreadableFile>) {
    let (files, unreadable) = read_applicable_files(named);
    let keys = Keys::new();
    let read = files.into_iter().map(|file| {
        let parsed = parse(&file, &keys);
        (file.path, parsed)
    });
    (read.collect(), unreadable)
}

/// Returns `true` if there is no settings file, not even one that cannot be read.
pub(crate) fn has_no_files(named: Option<&Path>) -> bool {
    let (files, unreadable) = read_applicable_files(named);
    files.is_empty() && unreadable.is_empty()
}

/// Returns the file to which the screen's settings are written: the named file, or the user's file
/// if none is named.
pub(crate) fn find_writable_path(named: Option<&Path>) -> Option<PathBuf> {
    match named.filter(|path| !path.as_os_str().is_empty()) {
        Some(path) if path == Path::new(NO_FILE) => None,
        Some(path) => Some(path.to_owned()),
        None => user_settings_path(),
    }
}

/// Merges the entries of several files. An entry of a later file replaces an earlier entry with the
/// same key, and removes earlier entries with which it conflicts.
fn merge_entries(files: impl IntoIterator<Item = Vec<Entry>>) -> Vec<Entry> {
    let mut held: Vec<Entry> = Vec::new();
    for entries in files {
        held.retain(|before| {
            !entries
                .iter()
                .any(|entry| replaces_earlier_entry(entry, before))
        });
        held.extend(entries);
    }
    held
}

fn replaces_earlier_entry(entry: &Entry, before: &Entry) -> bool {
    let is_same = entry.key.full_name() == before.key.full_name();
    is_same
        || !entry.is_switched_off()
            && !before.is_switched_off()
            && entry.key.conflicts_with(&before.key)
}

/// The settings file for all users of this machine.
const SYSTEM_FILE: &str = "/etc/gpumon/config.toml";

/// The value of `--config` that disables settings files.
const NO_FILE: &str = "none";

#[derive(Debug, Clone)]
pub(crate) struct SettingsFile {
    pub(crate) path: PathBuf,
    pub(crate) text: String,
}

/// A settings file that exists but cannot be used.
#[derive(Debug, Error)]
#[error("{cause}{}", describe_file_error_fix(cause))]
pub(crate) struct UnreadableFile {
    path: PathBuf,
    cause: PrivateFileError,
    /// Whether the file was named with `--config` or its variable.
    pub(crate) is_named: bool,
}

/// Returns the path of the user's settings file.
pub(crate) fn user_settings_path() -> Option<PathBuf> {
    Some(find_xdg_folder("XDG_CONFIG_HOME", ".config")?.join("gpumon/config.toml"))
}

/// Returns the settings files in the order in which they apply. If a file is named, only this file
/// is returned, otherwise the existing files of the system and the user. If one of these two files
/// cannot be read, the other file is still used.
pub(crate) fn read_applicable_files(
    named: Option<&Path>,
) -> (Vec<SettingsFile>, Vec<UnreadableFile>) {
    match named.filter(|path| !path.as_os_str().is_empty()) {
        Some(path) if path == Path::new(NO_FILE) => Default::default(),
        Some(path) => read_existing_files(std::iter::once((path.to_owned(), true))),
        None => read_existing_files(
            [Some(PathBuf::from(SYSTEM_FILE)), user_settings_path()]
                .into_iter()
                .flatten()
                .map(|path| (path, false)),
        ),
    }
}

fn read_existing_files(
    paths: impl Iterator<Item = (PathBuf, bool)>,
) -> (Vec<SettingsFile>, Vec<UnreadableFile>) {
    let (mut files, mut unreadable) = (Vec::new(), Vec::new());
    for (path, is_named) in paths {
        match read_text(&path) {
            Ok(text) => files.push(SettingsFile { path, text }),
            Err(PrivateFileError::Unreadable(_, cause))
                if !is_named && counts_as_missing(&path, cause.kind()) => {}
            Err(cause) => unreadable.push(UnreadableFile {
                path,
                cause,
                is_named,
            }),
        }
    }
    (files, unreadable)
}

/// Returns `true` if the file counts as missing for this user, because it does not exist or the
/// user may not access its directory. With `sudo -u`, the environment may name another user's home
/// directory; this must not stop the command.
fn counts_as_missing(path: &Path, cause: io::ErrorKind) -> bool {
    use io::ErrorKind::{NotADirectory, NotFound, PermissionDenied};
    matches!(cause, NotFound | NotADirectory)
        || cause == PermissionDenied && path.metadata().is_err()
}

/// Returns the text of a settings file. Settings control what gpumon does, so a file that other
/// users may write to is refused.
fn read_text(path: &Path) -> Result<String, PrivateFileError> {
    Ok(PrivateFile::read(path, Secrecy::Public)?.text().to_owned())
}

fn describe_file_error_fix(cause: &PrivateFileError) -> &'static str {
    let cause = match cause {
        PrivateFileError::Unreadable(_, cause) => cause,
        PrivateFileError::OfAnother { .. } => {
            return ", or ignore all settings files with --config none";
        }
        _ => return "",
    };
    match cause.kind() {
        io::ErrorKind::PermissionDenied => {
            "; make the file readable for this user, or choose another file with --config"
        }
        io::ErrorKind::InvalidData => "; save the file as UTF-8",
        _ => "; check the path",
    }
}

impl UnreadableFile {
    /// Returns `true` if the file was named and does not exist, but can be created.
    pub(crate) fn can_be_created(&self) -> bool {
        let folder = self
            .path
            .parent()
            .filter(|folder| !folder.as_os_str().is_empty());
        let is_missing = matches!(
            &self.cause,
            PrivateFileError::Unreadable(_, cause) if cause.kind() == io::ErrorKind::NotFound
        );
        self.is_named && is_missing && folder.is_none_or(Path::is_dir)
    }
}

#[cfg(test)]
mod tests;
