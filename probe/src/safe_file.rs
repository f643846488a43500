//! Safe writing of files in directories that another user may have prepared.
//!
//! Another user can place links, pipes and files under the names that gpumon writes to. Through
//! such a link, gpumon could overwrite a file of the user who runs it. gpumon therefore uses its
//! own directories only if they belong to this user or root, and are not writable by everybody.
//! Files in them are opened relative to the directory ([`Folder`]). In every directory, a file is
//! opened only if it is a regular file without other hard links. It is never opened through a
//! symbolic link, and is replaced by renaming a new file.
//!
//! A path on the command line is chosen by the user, so links that belong to that user or root are
//! followed ([`create`]). Temporary files and locks next to the path are never opened through
//! links.

use std::{
    ffi::{OsStr, OsString},
    fs::{self, DirBuilder, File, Metadata, Permissions},
    hash::{BuildHasher, RandomState},
    io::{self, ErrorKind, Write},
    os::{
        fd::{AsFd, BorrowedFd, OwnedFd},
        unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt, fchown},
    },
    path::{Path, PathBuf},
};

use rustix::{
    fs::{AtFlags, CWD, Mode, OFlags, openat, renameat, unlinkat},
    io::Errno,
    process::geteuid,
};
use thiserror::Error;

use crate::bounded;

/// The permission bit that lets every user write. The bit for the group is accepted: a group's
/// members are trusted with the directory, for example where Kubernetes mounts a volume with
/// `fsGroup`. Links that they create are still not followed.
const WRITABLE_BY_OTHERS: u32 = 0o002;

/// The maximum number of attempts to open a file that other processes create or remove at the same
/// time.
const MAX_TRIES: u32 = 5;

/// Flags for opening files that another user may have prepared. With these flags, opening a file
/// neither blocks this process nor gives it a controlling terminal.
const CAREFUL_FLAGS: OFlags = OFlags::NOFOLLOW
    .union(OFlags::NONBLOCK)
    .union(OFlags::NOCTTY)
    .union(OFlags::CLOEXEC);

/// A directory that belongs to this program's user or root and is not writable by everybody.
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
    handle: OwnedFd,
}

/// The users whose directories are accepted, in addition to root.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AcceptedOwner {
    /// Only this program's user and root.
    Own,
    /// This program's user and root. If this program runs as root, any user is accepted, because
    /// root writes for services that run as another user.
    AnyForRoot,
}

/// The reason why a directory is not used.
#[derive(Debug, Error)]
pub enum FolderError {
    /// The directory cannot be created or opened.
    #[error("{path} cannot be created or opened: {cause}", path = .path.display())]
    Unavailable {
        path: PathBuf,
        /// The error that the system returned.
        cause: io::Error,
    },
    /// The directory belongs to another user, who can modify its files.
    #[error(
        "{path} belongs to user {uid}, who could replace the files in it: choose a directory that \
         belongs to user {own}",
        path = .path.display()
    )]
    OtherOwner {
        path: PathBuf,
        /// The user ID of the owner of the directory, or of a link to it.
        uid: u32,
        /// The user ID of this program.
        own: u32,
    },
    /// Every user can modify the files in the directory.
    #[error(
        "{path} can be written to by other users, who could replace the files in it: run `chmod \
         go-w {path}`, or choose another directory",
        path = .0.display()
    )]
    Writable(PathBuf),
}

impl From<FolderError> for io::Error {
    fn from(error: FolderError) -> Self {
        let kind = match &error {
            FolderError::Unavailable { cause, .. } => cause.kind(),
            FolderError::OtherOwner { .. } | FolderError::Writable(_) => {
                ErrorKind::PermissionDenied
            }
        };
        Self::new(kind, error.to_string())
    }
}

impl Folder {
    /// Opens a directory. A missing directory is created, accessible only to this user.
    ///
    /// # Errors
    /// Returns an error if the directory cannot be created or opened, belongs to another user, or
    /// is writable by everybody.
    pub fn create(path: &Path, owner: AcceptedOwner) -> Result<Self, FolderError> {
        let unavailable = |cause| FolderError::Unavailable {
            path: path.to_owned(),
            cause,
        };
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(path)
            .map_err(unavailable)?;
        Self::open(path, owner)
    }

    /// Opens a directory.
    ///
    /// # Errors
    /// Returns an error if the directory cannot be opened, belongs to another user, or is writable
    /// by everybody.
    pub fn open(path: &Path, owner: AcceptedOwner) -> Result<Self, FolderError> {
        let own = geteuid().as_raw();
        let unavailable = |cause: io::Error| FolderError::Unavailable {
            path: path.to_owned(),
            cause,
        };
        let is_trusted = |found: &Metadata| {
            [own, 0].contains(&found.uid()) || (owner == AcceptedOwner::AnyForRoot && own == 0)
        };
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let handle =
            openat(CWD, path, flags, Mode::empty()).map_err(|error| unavailable(error.into()))?;
        let opened = File::from(handle);
        // The path itself is also checked: if it is a symbolic link, the link's owner can change
        // the target.
        for found in [fs::symlink_metadata(path), opened.metadata()] {
            let found = found.map_err(unavailable)?;
            if !is_trusted(&found) {
                return Err(FolderError::OtherOwner {
                    path: path.to_owned(),
                    uid: found.uid(),
                    own,
                });
            }
            if found.is_dir() && found.mode() & WRITABLE_BY_OTHERS != 0 {
                return Err(FolderError::Writable(path.to_owned()));
            }
        }
        Ok(Self {
            path: path.to_owned(),
            handle: opened.into(),
        })
    }

    /// Returns the path that was used to open the directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Opens a file for reading and writing. A missing file is created, accessible only to this
    /// user.
    ///
    /// # Errors
    /// Returns an error if the file cannot be opened, is a symbolic link, has other hard links, or
    /// is not a regular file.
    pub fn open_file(&self, name: &str) -> io::Result<File> {
        for _ in 0..MAX_TRIES {
            if let Some(file) = open_plain_file(self.handle.as_fd(), Path::new(name), 0o600)? {
                return Ok(file);
            }
        }
        Err(io::Error::other("the file is being replaced repeatedly"))
    }

    /// Returns the content of a file, or `None` if there is no such file.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read, has more than `limit` bytes, is a link, or is
    /// not a regular file.
    pub fn read(&self, name: impl AsRef<OsStr>, limit: usize) -> io::Result<Option<Vec<u8>>> {
        let flags = OFlags::RDONLY | CAREFUL_FLAGS;
        let opened = openat(&self.handle, name.as_ref(), flags, Mode::empty());
        read_content(opened, limit)
    }

    /// Replaces the content of a file atomically: readers see either the old or the new content,
    /// even after a crash.
    ///
    /// # Errors
    /// Returns an error if the file cannot be written. The old content is kept.
    pub fn replace(&self, name: impl AsRef<OsStr>, bytes: &[u8]) -> io::Result<()> {
        let folder = File::from(self.handle.try_clone()?).metadata()?;
        write_and_rename(self.handle.as_fd(), name.as_ref(), bytes, |file| {
            // Files that root writes into a service's directory must belong to that service's user.
            if folder.uid() != geteuid().as_raw() {
                let _ = fchown(file, Some(folder.uid()), Some(folder.gid()));
            }
            Ok(())
        })
    }

    /// Returns the file descriptor of the directory, for use with flock(2).
    pub fn handle(&self) -> BorrowedFd<'_> {
        self.handle.as_fd()
    }
}

/// Returns the content of a file, or `None` if there is no such file. Links are followed.
///
/// # Errors
/// Returns an error if the file cannot be read, has more than `limit` bytes, or is not a regular
/// file.
pub fn read(path: &Path, limit: usize) -> io::Result<Option<Vec<u8>>> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    read_content(openat(CWD, path, flags, Mode::empty()), limit)
}

fn read_content(opened: rustix::io::Result<OwnedFd>, limit: usize) -> io::Result<Option<Vec<u8>>> {
    let file = match opened.map_err(io::Error::from) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        opened => File::from(opened?),
    };
    let found = file.metadata()?;
    if !found.is_file() {
        return Err(invalid_data("not a regular file"));
    }
    if found.len() > limit as u64 {
        return Err(invalid_data(format!(
            "the file has more than {limit} bytes"
        )));
    }
    bounded::read_from(file, limit).map(Some)
}

/// Splits the path of a file into the path of its directory and its name.
///
/// # Errors
/// Returns an error if the path has no file name, such as `/` or a path that ends with `..`.
pub(crate) fn split_file_path(path: &Path) -> io::Result<(&Path, &OsStr)> {
    let name = path
        .file_name()
        .ok_or_else(|| invalid_data("the path does not name a file"))?;
    let folder = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty())
        .unwrap_or(Path::new("."));
    Ok((folder, name))
}

/// Returns an error for invalid data.
pub(crate) fn invalid_data(cause: impl Into<String>) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, cause.into())
}

/// Opens a file for reading and writing. A missing file is created with the permissions in `mode`.
/// Returns `None` if another process created or removed the file at the same time.
///
/// # Errors
/// Returns an error if the file cannot be opened, is a symbolic link, has other hard links, or is
/// not a regular file.
pub fn open_plain_file(folder: BorrowedFd<'_>, path: &Path, mode: u32) -> io::Result<Option<File>> {
    // Opening and creating are separate calls, because the kernel refuses O_CREAT for another
    // user's file in a directory such as /tmp.
    let file = match openat(folder, path, OFlags::RDWR | CAREFUL_FLAGS, Mode::empty()) {
        Err(Errno::NOENT) => {
            let new = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | CAREFUL_FLAGS;
            match openat(folder, path, new, Mode::from_raw_mode(mode)) {
                Err(Errno::EXIST) => return Ok(None),
                opened => {
                    let file = File::from(opened?);
                    // The umask may have removed bits that other users need.
                    file.set_permissions(Permissions::from_mode(mode))?;
                    file
                }
            }
        }
        // The kernel returns `LOOP` for a symbolic link, and `NXIO` for a pipe or device without a
        // reader.
        Err(Errno::LOOP | Errno::NXIO) => return Err(not_plain_error()),
        opened => File::from(opened?),
    };
    let found = file.metadata()?;
    // A file with another hard link may be an important file elsewhere.
    if !found.is_file() || found.nlink() > 1 {
        return Err(not_plain_error());
    }
    Ok(Some(file))
}

fn not_plain_error() -> io::Error {
    io::Error::other(
        "the file is a symbolic link, has a second hard link, or is not a regular file; move it to \
         another directory",
    )
}

/// Opens an output file that a user named. A missing file is created, and an existing file keeps
/// its content. Links are followed if they belong to this user or root.
///
/// # Errors
/// Returns an error if the file cannot be opened, or if the path is another user's link.
pub fn create(path: &Path) -> io::Result<File> {
    let target = match fs::symlink_metadata(path) {
        Ok(link) if link.is_symlink() => {
            if ![geteuid().as_raw(), 0].contains(&link.uid()) {
                return Err(io::Error::new(
                    ErrorKind::PermissionDenied,
                    format!(
                        "the file is a link created by user {}; remove the link, or choose another \
                         file",
                        link.uid()
                    ),
                ));
            }
            // `canonicalize` fails if the link's target does not exist. In this case, the
            // unresolved path is used, and the kernel follows the link when it creates the file.
            fs::canonicalize(path).ok()
        }
        _ => Some(path.to_owned()),
    };
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::CLOEXEC | OFlags::NOCTTY;
    let mode = Mode::from_raw_mode(0o666);
    Ok(match target {
        Some(target) => openat(CWD, &target, flags | OFlags::NOFOLLOW, mode),
        None => openat(CWD, path, flags, mode),
    }?
    .into())
}

/// Opens an output file that a user named, and empties it. Links are followed as in [`create`].
///
/// # Errors
/// Returns an error if the file cannot be opened, or if the path is another user's link.
pub fn create_empty(path: &Path) -> io::Result<File> {
    let file = create(path)?;
    // Pipes and devices have no length to truncate.
    if file.metadata()?.is_file() {
        file.set_len(0)?;
    }
    Ok(file)
}

/// Replaces the content of a file that a user named. An existing file keeps its permissions; a new
/// file gets `mode`.
///
/// # Errors
/// Returns an error if the file cannot be written. The old content is kept.
pub fn replace(path: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    let (folder, name) = split_file_path(path)?;
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let folder = openat(CWD, folder, flags, Mode::empty())?;
    let before = fs::symlink_metadata(path).ok().filter(Metadata::is_file);
    let permissions = before.map_or_else(
        || Permissions::from_mode(mode),
        |before| before.permissions(),
    );
    write_and_rename(folder.as_fd(), name, bytes, |file| {
        file.set_permissions(permissions)
    })
}

/// Writes a new file under an unpredictable name, and renames it to `name`.
fn write_and_rename(
    folder: BorrowedFd<'_>,
    name: &OsStr,
    bytes: &[u8],
    prepare: impl FnOnce(&File) -> io::Result<()>,
) -> io::Result<()> {
    let mut new = OsString::from(".");
    new.push(name);
    new.push(format!(".{:016x}.new", RandomState::new().hash_one(name)));
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | CAREFUL_FLAGS;
    let mut file = File::from(openat(folder, &new, flags, Mode::RUSR | Mode::WUSR)?);
    let written = prepare(&file).and_then(|()| {
        file.write_all(bytes)?;
        file.sync_all()?;
        Ok(renameat(folder, &new, folder, name)?)
    });
    written.inspect_err(|_| {
        let _ = unlinkat(folder, &new, AtFlags::empty());
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{chown, symlink};

    use super::*;

    fn set_mode(path: &Path, mode: u32) {
        fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn folder_writable_by_everybody_is_refused() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("new/data");
        assert!(Folder::open(&path, AcceptedOwner::Own).is_err() && !path.exists());
        Folder::create(&path, AcceptedOwner::Own).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o700);
        for mode in [0o777, 0o702, 0o1777] {
            set_mode(&path, mode);
            let why = Folder::open(&path, AcceptedOwner::Own)
                .unwrap_err()
                .to_string();
            assert!(
                why.contains(&format!("run `chmod go-w {}`", path.display())),
                "{why}"
            );
        }
        for mode in [0o755, 0o2770] {
            set_mode(&path, mode);
            Folder::open(&path, AcceptedOwner::Own).unwrap();
        }
    }

    #[test]
    fn folder_of_another_user_is_refused() {
        if !geteuid().is_root() {
            return;
        }
        let root = tempfile::tempdir().unwrap();
        let (folder, link) = (root.path().join("folder"), root.path().join("link"));
        fs::create_dir(&folder).unwrap();
        symlink(&folder, &link).unwrap();
        Folder::open(&link, AcceptedOwner::Own).unwrap();
        std::os::unix::fs::lchown(&link, Some(4242), None).unwrap();
        let why = Folder::open(&link, AcceptedOwner::Own)
            .unwrap_err()
            .to_string();
        assert!(why.contains("belongs to user 4242"), "{why}");
        chown(&folder, Some(4242), None).unwrap();
        let why = Folder::open(&folder, AcceptedOwner::Own)
            .unwrap_err()
            .to_string();
        assert!(
            why.contains("choose a directory that belongs to user 0"),
            "{why}"
        );
        Folder::open(&folder, AcceptedOwner::AnyForRoot)
            .unwrap()
            .replace("file", b"x")
            .unwrap();
        assert_eq!(fs::metadata(folder.join("file")).unwrap().uid(), 4242);
    }

    #[test]
    fn symlinks_are_not_followed_for_reading_or_writing() {
        let root = tempfile::tempdir().unwrap();
        let (folder, victim) = (root.path().join("folder"), root.path().join("victim"));
        fs::create_dir(&folder).unwrap();
        set_mode(&folder, 0o700);
        fs::write(&victim, "precious").unwrap();
        symlink(&victim, folder.join("link")).unwrap();
        symlink(root.path().join("missing"), folder.join("dangling")).unwrap();
        fs::hard_link(&victim, folder.join("name")).unwrap();
        let folder = Folder::open(&folder, AcceptedOwner::Own).unwrap();
        for name in ["link", "dangling", "name"] {
            assert!(
                folder
                    .open_file(name)
                    .unwrap_err()
                    .to_string()
                    .contains("move it to another directory"),
                "{name}"
            );
        }
        assert!(folder.read("link", 100).is_err());
        folder.replace("link", b"new").unwrap();
        assert_eq!(folder.read("link", 100).unwrap().unwrap(), b"new");
        assert_eq!(fs::read(&victim).unwrap(), b"precious");
        assert!(!root.path().join("missing").exists());
        let names = fs::read_dir(folder.path()).unwrap().count();
        assert_eq!(names, 3, "no temporary file is left");
    }

    #[test]
    fn only_regular_files_are_opened() {
        let root = tempfile::tempdir().unwrap();
        let folder = Folder::create(&root.path().join("folder"), AcceptedOwner::Own).unwrap();
        let pipe = folder.path().join("pipe");
        rustix::fs::mknodat(
            CWD,
            &pipe,
            rustix::fs::FileType::Fifo,
            Mode::RUSR | Mode::WUSR,
            0,
        )
        .unwrap();
        assert!(folder.open_file("pipe").is_err());
        assert!(folder.read("pipe", 100).is_err());
        assert!(read(&pipe, 100).is_err());
        assert!(read(folder.path(), 100).is_err());
        folder.replace("file", b"12345").unwrap();
        assert!(
            folder
                .read("file", 4)
                .unwrap_err()
                .to_string()
                .contains("more than 4 bytes")
        );
        assert_eq!(folder.read("none", 4).unwrap(), None);
    }

    #[test]
    fn named_output_follows_only_symlinks_of_user() {
        let root = tempfile::tempdir().unwrap();
        let (file, link) = (root.path().join("file"), root.path().join("link"));
        symlink(&file, &link).unwrap();
        create(&link).unwrap().write_all(b"content").unwrap();
        assert_eq!(fs::read(&file).unwrap(), b"content");
        create(&link).unwrap();
        assert_eq!(
            fs::read(&file).unwrap(),
            b"content",
            "what is there is kept"
        );
        if geteuid().is_root() {
            std::os::unix::fs::lchown(&link, Some(4242), None).unwrap();
            assert!(
                create(&link)
                    .unwrap_err()
                    .to_string()
                    .contains("the file is a link created by user 4242")
            );
        }
    }

    #[test]
    fn replaced_file_keeps_its_permissions() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("file");
        let mode = || fs::metadata(&path).unwrap().mode() & 0o777;
        replace(&path, b"1", 0o640).unwrap();
        assert_eq!(mode(), 0o640);
        set_mode(&path, 0o604);
        replace(&path, b"2", 0o640).unwrap();
        assert_eq!((mode(), fs::read(&path).unwrap()), (0o604, b"2".to_vec()));
    }
}
