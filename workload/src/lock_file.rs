//! Files that are locked for a GPU with flock(2), one per UUID, in a folder that all users of the
//! machine share.
//!
//! The operating system releases a lock when the last process with the file open ends in any way.
//! The files are never removed: removing a file while another process opens it would result in two
//! locks.
//!
//! In the folder, everybody can create files, but nobody can remove those of others. Another user
//! may have created anything under the name of a lock. Therefore a lock file is only opened if it
//! is a regular file with one name, never through a link, and never created over another file. The
//! locks are an agreement and no protection, because any user can take all of them.

use std::{
    fs::{self, File},
    io::{self, Read, Seek, Write},
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use gpumon_probe::safe_file::open_plain;
use rustix::{
    fs::{CWD, FlockOperation, flock},
    io::Errno,
};

/// The candidates for the shared folder. The first one that exists and is open to all users is
/// used.
pub const FOLDERS: [&str; 2] = ["/run/lock", "/tmp"];
/// The environment variable that names another folder.
pub const VARIABLE: &str = "GPUMON_LOCKS";
/// The permissions of a folder in which anybody can write, and can remove only their own files.
const OPEN_TO_ALL: u32 = 0o1777;
/// The maximum number of attempts if the file is replaced each time.
const TRIES: u32 = 5;
/// The maximum length of a note, which is longer than any note written.
const LONGEST_NOTE: u64 = 256;

/// The result of trying to lock a file.
#[derive(Debug)]
pub enum Taken {
    /// The file is locked while this handle is open. The text is the note of the previous owner.
    Mine(File, String),
    /// Another process has the lock, and wrote this note.
    Theirs(String),
}

/// Returns the folder that all users share; `None` if there is none.
pub fn shared_folder() -> Option<PathBuf> {
    let is_shared = |folder: &&&str| {
        let found = fs::symlink_metadata(folder);
        found.is_ok_and(|found| found.is_dir() && found.mode() & OPEN_TO_ALL == OPEN_TO_ALL)
    };
    FOLDERS.iter().find(is_shared).map(PathBuf::from)
}

/// Returns the path of the lock file with this name for the GPU with this UUID.
pub fn path(folder: &Path, name: &str, uuid: &str) -> PathBuf {
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
pub fn take(path: &Path) -> io::Result<Taken> {
    for _ in 0..TRIES {
        let Some(mut file) = open(path)? else {
            continue;
        };
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(Errno::WOULDBLOCK) => return Ok(Taken::Theirs(note(&mut file))),
            Err(error) => return Err(error.into()),
        }
        // A cleanup of old files may have removed the file in the meantime, and nobody would notice
        // a lock on a removed file.
        if is_still(path, &file) {
            let note = note(&mut file);
            return Ok(Taken::Mine(file, note));
        }
    }
    Err(io::Error::other("it is replaced again and again"))
}

/// Writes a note for other processes into a file.
///
/// # Errors
/// Returns an error if the note cannot be written.
pub fn write_note(file: &mut File, text: &str) -> io::Result<()> {
    file.set_len(0)?;
    file.rewind()?;
    file.write_all(text.as_bytes())
}

/// Returns the note in a file, or an empty text if it cannot be read.
fn note(file: &mut File) -> String {
    let mut note = String::new();
    let read = file.take(LONGEST_NOTE).read_to_string(&mut note);
    read.map_or_else(|_| String::new(), |_| note)
}

/// Opens a lock file, which every user may open; returns `None` if another process created or
/// removed it in the meantime.
///
/// # Errors
/// Returns an error if the file cannot be opened or is not a regular file.
pub fn open(path: &Path) -> io::Result<Option<File>> {
    open_plain(CWD, path, 0o666)
}

/// Returns `true` if the path still refers to this open file.
pub fn is_still(path: &Path, file: &File) -> bool {
    let identity = |found: fs::Metadata| (found.dev(), found.ino());
    match (fs::symlink_metadata(path), file.metadata()) {
        (Ok(named), Ok(opened)) => identity(named) == identity(opened),
        _ => false,
    }
}
