//! Reading of files that control gpumon or contain secrets: settings, alert rules, tokens, keys,
//! certificates, passwords. A user who can write to such a file could grant access or have a
//! program started, and a user who can read it could steal the secret.

use std::{
    fs::{File, Metadata},
    io::{self, Read},
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use rustix::process::geteuid;
use thiserror::Error;

use crate::bounded::open_regular;

/// The maximum size of a file in bytes, enough for a certificate chain or for thousands of tokens.
const MAX_FILE_BYTES: u64 = 1 << 20;

/// The directory in which Kubernetes mounts secrets. Files in it may be readable by everybody,
/// because only the container's users have access to the directory, and Kubernetes determines the
/// file modes.
const MOUNTED_SECRETS: &str = "/var/run/secrets";

/// Whether other users may read a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Secrecy {
    /// Only the file's owner and group may read the file.
    Secret,
    /// Everybody may read the file.
    Public,
}

/// The reason why a file is not used.
#[derive(Debug, Error)]
pub enum PrivateFileError {
    /// The file cannot be opened or read.
    #[error("cannot read {path}: {cause}", path = .0.display(), cause = .1)]
    Unreadable(PathBuf, io::Error),
    /// The file is a folder, a pipe or a device.
    #[error("{} is not a regular file; use a regular file", .0.display())]
    NotRegular(PathBuf),
    /// The file is too large for its purpose.
    #[error(
        "{} is larger than the limit of {MAX_FILE_BYTES} bytes; use a smaller file",
        .0.display()
    )]
    TooLarge(PathBuf),
    /// The file belongs to another user, who can modify it.
    #[error(
        "{path} belongs to user {uid}, who could change what gpumon does; run `chown {own} {path}`",
        path = .path.display()
    )]
    OfAnother {
        path: PathBuf,
        /// The user ID of the file's owner.
        uid: u32,
        /// The user ID of this program.
        own: u32,
    },
    /// The group or everybody can write to the file.
    #[error(
        "{path} can be written to by others, who could change what gpumon does; run `chmod go-w \
         {path}`",
        path = .0.display()
    )]
    Writable(PathBuf),
    /// Everybody can read the file.
    #[error(
        "{path} contains secrets and can be read by others; run `chmod 600 {path}`",
        path = .0.display()
    )]
    Readable(PathBuf),
}

/// A file that only this program's user and root can modify. The path may contain symbolic links.
pub struct PrivateFile {
    path: PathBuf,
    metadata: Metadata,
    text: String,
}

impl PrivateFile {
    /// Reads a text file.
    ///
    /// # Errors
    /// Returns an error with a remedy if the file is not private.
    pub fn read(path: &Path, secrecy: Secrecy) -> Result<Self, PrivateFileError> {
        let own_path = || path.to_owned();
        let unreadable = |error| PrivateFileError::Unreadable(path.to_owned(), error);
        let file = open_regular(path).map_err(|error| match error.kind() {
            io::ErrorKind::InvalidInput => PrivateFileError::NotRegular(own_path()),
            _ => unreadable(error),
        })?;
        let metadata = file.metadata().map_err(unreadable)?;
        let own = geteuid().as_raw();
        if metadata.uid() != own && metadata.uid() != 0 {
            return Err(PrivateFileError::OfAnother {
                path: own_path(),
                uid: metadata.uid(),
                own,
            });
        }
        if metadata.mode() & 0o022 != 0 {
            return Err(PrivateFileError::Writable(own_path()));
        }
        let text = read_limited_text(file, path)?;
        let read = Self {
            path: own_path(),
            metadata,
            text,
        };
        if secrecy == Secrecy::Secret {
            read.check_not_world_readable()?;
        }
        Ok(read)
    }

    /// Checks that the file is not readable by everybody. A group may read it, because systemd,
    /// Kubernetes and Debian's `ssl-cert` grant access to secrets through groups.
    ///
    /// # Errors
    /// Returns an error if everybody can read the file.
    pub fn check_not_world_readable(&self) -> Result<(), PrivateFileError> {
        let is_readable =
            self.metadata.mode() & 0o004 != 0 && !self.path.starts_with(MOUNTED_SECRETS);
        if is_readable {
            Err(PrivateFileError::Readable(self.path.clone()))
        } else {
            Ok(())
        }
    }

    pub fn text(&self) -> &str {
        &self.text
    }
}

fn read_limited_text(file: File, path: &Path) -> Result<String, PrivateFileError> {
    let mut text = String::new();
    let length = file.take(MAX_FILE_BYTES + 1).read_to_string(&mut text);
    let length = length.map_err(|error| PrivateFileError::Unreadable(path.to_owned(), error))?;
    if length as u64 > MAX_FILE_BYTES {
        Err(PrivateFileError::TooLarge(path.to_owned()))
    } else {
        Ok(text)
    }
}

#[cfg(test)]
mod tests {
    use std::{
        fs::{self, Permissions},
        os::unix::fs::{PermissionsExt, chown, symlink},
    };

    use super::*;

    fn error_text(path: &Path, secrecy: Secrecy) -> Option<String> {
        PrivateFile::read(path, secrecy)
            .err()
            .map(|error| error.to_string())
    }

    #[test]
    fn file_mode_determines_acceptance() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("tokens");
        fs::write(&file, "x").unwrap();
        for (mode, public, secret) in [
            (0o600, None, None),
            (0o440, None, None),
            (0o644, None, Some("chmod 600")),
            (0o604, None, Some("chmod 600")),
            (0o620, Some("chmod go-w"), Some("chmod go-w")),
            (0o602, Some("chmod go-w"), Some("chmod go-w")),
        ] {
            fs::set_permissions(&file, Permissions::from_mode(mode)).unwrap();
            for (secrecy, cure) in [(Secrecy::Public, public), (Secrecy::Secret, secret)] {
                let refusal = error_text(&file, secrecy);
                let is_right = refusal
                    .as_deref()
                    .is_some_and(|text| cure.is_some_and(|cure| text.contains(cure)));
                assert!(
                    is_right || (refusal.is_none() && cure.is_none()),
                    "{mode:o} {secrecy:?}: {refusal:?}"
                );
            }
        }
    }

    #[test]
    fn symlink_is_judged_by_its_target() {
        let folder = tempfile::tempdir().unwrap();
        let [file, link] = ["file", "link"].map(|name| folder.path().join(name));
        fs::write(&file, "x").unwrap();
        symlink(&file, &link).unwrap();
        fs::set_permissions(&file, Permissions::from_mode(0o600)).unwrap();
        assert_eq!(
            PrivateFile::read(&link, Secrecy::Secret).unwrap().text(),
            "x",
            "as Kubernetes mounts secrets"
        );
        fs::set_permissions(&file, Permissions::from_mode(0o644)).unwrap();
        assert!(
            error_text(&link, Secrecy::Secret)
                .unwrap()
                .contains("chmod 600")
        );
        // Only root can change a file's owner, so other users skip this check.
        if chown(&file, Some(65_534), None).is_ok() {
            assert!(
                error_text(&link, Secrecy::Public)
                    .unwrap()
                    .contains("belongs to user 65534")
            );
        }
    }

    #[test]
    fn irregular_and_large_files_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let [pipe, large] = ["pipe", "large"].map(|name| folder.path().join(name));
        rustix::fs::mknodat(
            rustix::fs::CWD,
            &pipe,
            rustix::fs::FileType::Fifo,
            0o600.into(),
            0,
        )
        .unwrap();
        assert!(
            error_text(&pipe, Secrecy::Secret)
                .unwrap()
                .contains("regular file")
        );
        assert!(
            error_text(folder.path(), Secrecy::Public)
                .unwrap()
                .contains("regular file")
        );
        fs::write(&large, vec![b'x'; MAX_FILE_BYTES as usize + 1]).unwrap();
        assert!(
            error_text(&large, Secrecy::Public)
                .unwrap()
                .contains("larger than")
        );
        assert!(
            error_text(&folder.path().join("none"), Secrecy::Public)
                .unwrap()
                .contains("No such file")
        );
    }
}
