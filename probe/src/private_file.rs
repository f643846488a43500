//! Files that decide what gpumon does and whom it trusts: settings, alert rules, tokens, keys,
//! certificates, passwords. A user who can write to one can let anybody in or have a program
//! started, and a user who can read a secret has it.

use std::{
    fs::{File, Metadata},
    io::{self, Read},
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use rustix::process::geteuid;
use thiserror::Error;

use crate::bounded::open_regular;

/// A chain of certificates, or the tokens of thousands.
const MOST: u64 = 1 << 20;

/// What every user of a container may read, and nobody else: Kubernetes decides about its modes.
const MOUNTED_SECRETS: &str = "/var/run/secrets";

/// Whether others may know what is in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Secrecy {
    /// Nobody but its owner and group.
    Secret,
    /// Everybody.
    Public,
}

/// Why a file is not used.
#[derive(Debug, Error)]
pub enum FileError {
    /// The system does not let this program read it.
    #[error("cannot read {path}: {cause}", path = .0.display(), cause = .1)]
    Unreadable(PathBuf, io::Error),
    /// It is a folder, a pipe or a device.
    #[error("{} is not a regular file; name one", .0.display())]
    NotRegular(PathBuf),
    /// It is none of the kind.
    #[error("{} is larger than {MOST} bytes, which no such file is; name another", .0.display())]
    TooLarge(PathBuf),
    /// Another user decides what is in it.
    #[error(
        "{path} belongs to user {uid}, who could change what gpumon does; run `chown {own} {path}`",
        path = .path.display()
    )]
    OfAnother {
        /// The file.
        path: PathBuf,
        /// Whose it is.
        uid: u32,
        /// The user of this program.
        own: u32,
    },
    /// Its group or everybody decides what is in it.
    #[error(
        "{path} can be written to by others, who could change what gpumon does; run `chmod go-w {path}`",
        path = .0.display()
    )]
    Writable(PathBuf),
    /// Everybody may read it.
    #[error("{path} holds secrets and can be read by others; run `chmod 600 {path}`", path = .0.display())]
    Readable(PathBuf),
}

/// A file that nobody but this program's user and root decides about, through whatever links it was
/// reached.
pub struct PrivateFile {
    path: PathBuf,
    metadata: Metadata,
    text: String,
}

impl PrivateFile {
    /// Reads all of it, which is text.
    ///
    /// # Errors
    /// Where it is not one, and how to make it one.
    pub fn read(path: &Path, secrecy: Secrecy) -> Result<Self, FileError> {
        let own_path = || path.to_owned();
        let unreadable = |error| FileError::Unreadable(path.to_owned(), error);
        let file = open_regular(path).map_err(|error| match error.kind() {
            io::ErrorKind::InvalidInput => FileError::NotRegular(own_path()),
            _ => unreadable(error),
        })?;
        let metadata = file.metadata().map_err(unreadable)?;
        let own = geteuid().as_raw();
        if metadata.uid() != own && metadata.uid() != 0 {
            return Err(FileError::OfAnother {
                path: own_path(),
                uid: metadata.uid(),
                own,
            });
        }
        if metadata.mode() & 0o022 != 0 {
            return Err(FileError::Writable(own_path()));
        }
        let text = text(file, path)?;
        let read = Self {
            path: own_path(),
            metadata,
            text,
        };
        if secrecy == Secrecy::Secret {
            read.check_secret()?;
        }
        Ok(read)
    }

    /// # Errors
    /// Where everybody may read it. A group may: it is how systemd, Kubernetes and Debian's
    /// `ssl-cert` hand out secrets.
    pub fn check_secret(&self) -> Result<(), FileError> {
        let is_readable =
            self.metadata.mode() & 0o004 != 0 && !self.path.starts_with(MOUNTED_SECRETS);
        if is_readable {
            Err(FileError::Readable(self.path.clone()))
        } else {
            Ok(())
        }
    }

    /// What is in it.
    pub fn text(&self) -> &str {
        &self.text
    }
}

fn text(file: File, path: &Path) -> Result<String, FileError> {
    let mut text = String::new();
    let length = file.take(MOST + 1).read_to_string(&mut text);
    let length = length.map_err(|error| FileError::Unreadable(path.to_owned(), error))?;
    if length as u64 > MOST {
        Err(FileError::TooLarge(path.to_owned()))
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

    fn refusal(path: &Path, secrecy: Secrecy) -> Option<String> {
        PrivateFile::read(path, secrecy)
            .err()
            .map(|error| error.to_string())
    }

    #[test]
    fn the_mode_says_who_may_write_and_read() {
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
                let refusal = refusal(&file, secrecy);
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
    fn a_link_counts_as_what_it_leads_to() {
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
            refusal(&link, Secrecy::Secret)
                .unwrap()
                .contains("chmod 600")
        );
        // Only root can give a file away.
        if chown(&file, Some(65_534), None).is_ok() {
            assert!(
                refusal(&link, Secrecy::Public)
                    .unwrap()
                    .contains("belongs to user 65534")
            );
        }
    }

    #[test]
    fn what_is_no_file_or_too_large_is_refused_at_once() {
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
            refusal(&pipe, Secrecy::Secret)
                .unwrap()
                .contains("regular file")
        );
        assert!(
            refusal(folder.path(), Secrecy::Public)
                .unwrap()
                .contains("regular file")
        );
        fs::write(&large, vec![b'x'; MOST as usize + 1]).unwrap();
        assert!(
            refusal(&large, Secrecy::Public)
                .unwrap()
                .contains("larger than")
        );
        assert!(
            refusal(&folder.path().join("none"), Secrecy::Public)
                .unwrap()
                .contains("No such file")
        );
    }
}
