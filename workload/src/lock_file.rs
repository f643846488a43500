//! Files that are locked for a GPU, in a folder that all users of the machine share: one per UUID,
//! and flock(2) on it.
//!
//! The kernel lets go of a lock when the last process that holds its file open ends, however it
//! ends. The files stay: removing one while another process opens it would make two locks of one.
//!
//! They lie in a folder in which everybody may make files and nobody remove another's. There,
//! somebody else may have made anything under the name of a lock, so that it is only opened as a
//! plain file with one name, never through a link, and never created over anything. Whoever wants
//! to can hold all the locks; they are an agreement, not a guard.

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

/// Where everybody looks: the first of these that is there and open to all.
pub const FOLDERS: [&str; 2] = ["/run/lock", "/tmp"];
/// Names another folder.
pub const VARIABLE: &str = "GPUMON_LOCKS";
/// Anybody may write, and remove what is their own.
const OPEN_TO_ALL: u32 = 0o1777;
/// How often a file may turn out to have been replaced.
const TRIES: u32 = 5;
/// Longer than anything that is written into one.
const LONGEST_NOTE: u64 = 256;

/// What came of trying to lock a file.
#[derive(Debug)]
pub enum Taken {
    /// It is locked as long as this is open, with what the last one wrote.
    Mine(File, String),
    /// Somebody else has it, who wrote this.
    Theirs(String),
}

/// The folder that all users share; `None` where there is none.
pub fn shared_folder() -> Option<PathBuf> {
    let is_shared = |folder: &&&str| {
        let found = fs::symlink_metadata(folder);
        found.is_ok_and(|found| found.is_dir() && found.mode() & OPEN_TO_ALL == OPEN_TO_ALL)
    };
    FOLDERS.iter().find(is_shared).map(PathBuf::from)
}

/// The file of the GPU with this UUID, for what is locked under this name.
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

/// Tries to lock a file, without waiting.
///
/// # Errors
/// Where it cannot be opened, or is no plain file.
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
        // A cleaner of old files may have removed it in between; a lock on what has no name keeps
        // nobody out.
        if is_still(path, &file) {
            let note = note(&mut file);
            return Ok(Taken::Mine(file, note));
        }
    }
    Err(io::Error::other("it is replaced again and again"))
}

/// Writes into a file what others are to know.
///
/// # Errors
/// Where that cannot be written.
pub fn write_note(file: &mut File, text: &str) -> io::Result<()> {
    file.set_len(0)?;
    file.rewind()?;
    file.write_all(text.as_bytes())
}

/// What is written there; nothing where that cannot be read.
fn note(file: &mut File) -> String {
    let mut note = String::new();
    let read = file.take(LONGEST_NOTE).read_to_string(&mut note);
    read.map_or_else(|_| String::new(), |_| note)
}

/// Opens a lock file, which every user may open; `None` if another process created or removed it
/// meanwhile.
///
/// # Errors
/// If the file cannot be opened, or is no plain file.
pub fn open(path: &Path) -> io::Result<Option<File>> {
    open_plain(CWD, path, 0o666)
}

/// Whether this is still the file of that name.
pub fn is_still(path: &Path, file: &File) -> bool {
    let identity = |found: fs::Metadata| (found.dev(), found.ino());
    match (fs::symlink_metadata(path), file.metadata()) {
        (Ok(named), Ok(opened)) => identity(named) == identity(opened),
        _ => false,
    }
}
