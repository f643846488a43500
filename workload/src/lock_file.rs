//! Lock files for GPUs, which are locked with flock(2). Each GPU has a file named by its UUID, in a
//! directory that all users of the machine share.
//!
//! The operating system releases a lock when the last process that has the file open ends in any
//! way. The files are never removed: if a file were removed while another process opens it, there
//! could be two locks.
//!
//! Everybody can create files in the directory, but nobody can remove those of others. Another user
//! may have created anything under the name of a lock file. A lock file is therefore only opened if
//! it is a regular file with a single name, never through a link, and it is never created over
//! another file. The locks are cooperative and no protection, because any user can take all of
//! them.

use std::{
    fs::{self, File},
    io::{self, Read, Seek, Write},
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use gpumon_probe::safe_file::open_plain_file;
use rustix::{
    fs::{CWD, FlockOperation, flock},
    io::Errno,
};

/// The candidates for the shared directory. The first that exists and is writable for all users is
/// used.
pub const LOCK_FOLDERS: [&str; 2] = ["/run/lock", "/tmp"];
/// The environment variable that names another directory for lock files.
pub const FOLDER_VARIABLE: &str = "GPUMON_LOCKS";
/// The permissions of a directory in which all users can create files, but can only remove their
/// own.
const SHARED_FOLDER_MODE: u32 = 0o1777;
/// The maximum number of attempts to lock a file. Another attempt is made if the file was replaced
/// during the last one.
const MAX_TRIES: u32 = 5;
/// The maximum length of a note that is read, in bytes. All notes that gpumon writes are shorter.
const MAX_LOCK_TEXT_BYTES: u64 = 256;

/// The result of an attempt to lock a file.
#[derive(Debug)]
pub enum LockResult {
    /// The file was locked. It stays locked while it is open. The text is the note of the previous
    /// owner.
    Mine(File, String),
    /// Another process holds the lock, and wrote this note.
    Theirs(String),
}

/// Returns the directory that all users share, or `None` if there is none.
pub fn find_shared_lock_folder() -> Option<PathBuf> {
    let is_shared = |folder: &&&str| {
        let found = fs::symlink_metadata(folder);
        found.is_ok_and(|found| {
            found.is_dir() && found.mode() & SHARED_FOLDER_MODE == SHARED_FOLDER_MODE
        })
    };
    LOCK_FOLDERS.iter().find(is_shared).map(PathBuf::from)
}

/// Returns the path of the lock file with this name for the GPU with this UUID.
pub fn lock_path(folder: &Path, name: &str, uuid: &str) -> PathBuf {
    let plain = |letter: char| {
        if letter.is_ascii_alphanumeric() || letter == '-' {
            letter
        } else {
            '_'
        }
    };
    folder.join(format!(
        "{name}-{}.lock",
        uuid.chars().map(plain).collect::<String>()
    ))
}

/// Tries to lock a file without waiting.
///
/// # Errors
/// Returns an error if the file cannot be opened or is not a regular file.
pub fn try_lock(path: &Path) -> io::Result<LockResult> {
    for _ in 0..MAX_TRIES {
        let Some(mut file) = open_lock_file(path)? else {
            continue;
        };
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(Errno::WOULDBLOCK) => return Ok(LockResult::Theirs(read_lock_text(&mut file))),
            Err(error) => return Err(error.into()),
        }
        // A cleanup of old files may have removed the file in the meantime. Other processes would
        // not notice a lock on a removed file.
        if is_same_file(path, &file) {
            let note = read_lock_text(&mut file);
            return Ok(LockResult::Mine(file, note));
        }
    }
    Err(io::Error::other("the file is being replaced repeatedly"))
}

/// Writes a note for other processes into a file.
///
/// # Errors
/// Returns an error if the note cannot be written.
pub fn write_lock_text(file: &mut File, text: &str) -> io::Result<()> {
    file.set_len(0)?;
    file.rewind()?;
    file.write_all(text.as_bytes())
}

/// Returns the note in a lock file, or an empty string if the file cannot be read.
fn read_lock_text(file: &mut File) -> String {
    let mut note = String::new();
    let read = file.take(MAX_LOCK_TEXT_BYTES).read_to_string(&mut note);
    read.map_or_else(|_| String::new(), |_| note)
}

/// Opens a lock file, or creates one that every user may open. Returns `None` if another process
/// created or removed the file in the meantime.
///
/// # Errors
/// Returns an error if the file cannot be opened, or if it is not a regular file.
pub fn open_lock_file(path: &Path) -> io::Result<Option<File>> {
    open_plain_file(CWD, path, 0o666)
}

/// Returns `true` if the path still refers to this open file.
pub fn is_same_file(path: &Path, file: &File) -> bool {
    let identity = |found: fs::Metadata| (found.dev(), found.ino());
    match (fs::symlink_metadata(path), file.metadata()) {
        (Ok(named), Ok(opened)) => identity(named) == identity(opened),
        _ => false,
    }
}
