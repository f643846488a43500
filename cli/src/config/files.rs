//! The files of settings: where they are, and their text.

use std::{
    env, io,
    path::{Path, PathBuf},
};

use gpumon_probe::private_file::{FileError, PrivateFile, Secrecy};
use thiserror::Error;

/// For every user of this machine.
const SYSTEM: &str = "/etc/gpumon/config.toml";

/// The name for no file at all.
pub(super) const NONE: &str = "none";

/// A file that is there.
#[derive(Debug, Clone)]
pub(crate) struct SettingsFile {
    pub(crate) path: PathBuf,
    pub(crate) text: String,
}

/// A file that is there and is not used.
#[derive(Debug, Error)]
#[error("{cause}{}", cure(cause))]
pub(crate) struct Unreadable {
    path: PathBuf,
    cause: FileError,
    /// Whether somebody named it.
    pub(crate) is_named: bool,
}

/// The user's file.
pub(crate) fn usual_path() -> Option<PathBuf> {
    let absolute = |name: &str| {
        env::var_os(name)
            .map(PathBuf::from)
            .filter(|path| path.is_absolute())
    };
    let folder = absolute("XDG_CONFIG_HOME").or_else(|| Some(absolute("HOME")?.join(".config")))?;
    Some(folder.join("gpumon").join("config.toml"))
}

/// The files that hold, the later over the earlier: the one that was named, or else those of system and user that are
/// there. Of these, one that cannot be read keeps nobody from the other.
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
        match read(&path) {
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

/// Whether there is no such file, as far as this user can know: another user's home directory, which `sudo -u` may leave in
/// the environment, stops nothing.
pub(super) fn is_out_of_reach(path: &Path, cause: io::ErrorKind) -> bool {
    use io::ErrorKind::{NotADirectory, NotFound, PermissionDenied};
    matches!(cause, NotFound | NotADirectory)
        || cause == PermissionDenied && path.metadata().is_err()
}

/// Returns the text of a file, which decides what gpumon does: other users may not write to it.
pub(super) fn read(path: &Path) -> Result<String, FileError> {
    Ok(PrivateFile::read(path, Secrecy::Public)?.text().to_owned())
}

fn cure(cause: &FileError) -> &'static str {
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
    /// Whether it was named, is not there, and could be made there.
    pub(crate) fn can_be_made(&self) -> bool {
        let folder = self
            .path
            .parent()
            .filter(|folder| !folder.as_os_str().is_empty());
        let is_missing = matches!(&self.cause, FileError::Unreadable(_, cause) if cause.kind() == io::ErrorKind::NotFound);
        self.is_named && is_missing && folder.is_none_or(Path::is_dir)
    }
}
