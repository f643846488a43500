//! The history directory: the lock for writing to it, and the damaged database files that it keeps.

use std::{
    fs::{self, File},
    io::{self, Read, Write},
    path::{Path, PathBuf},
};

use gpumon_probe::{
    model::now_ms,
    safe_file::{AcceptedOwner, Folder, FolderError},
};
use rustix::{
    fs::{FlockOperation, flock},
    io::Errno,
    system::uname,
};

use crate::database::FILE_NAME;

const LOCK_FILE: &str = "history.lock";

/// The reason why a directory cannot be written to.
pub(super) struct LockRefusal {
    pub(super) why: String,
    /// Whether the files can be read. This is `false` if another machine writes them, because
    /// SQLite's newest rows can only be found through shared memory, which other machines cannot
    /// access.
    pub(super) is_readable: bool,
    /// Whether another process writes to the directory.
    pub(super) is_anothers: bool,
}

/// Creates the directory, accessible only to this user, and locks it for writing.
pub(super) fn lock_folder(folder: &Path) -> Result<File, LockRefusal> {
    let refusal = |why: String| LockRefusal {
        why,
        is_readable: true,
        is_anothers: false,
    };
    let opened = Folder::create(folder, AcceptedOwner::Own).map_err(|error| match error {
        FolderError::Unavailable { cause, .. } => refusal(format!(
            "the directory cannot be created or opened ({cause}): choose another with --data-dir"
        )),
        // The files may belong to another user. They are therefore not read.
        error => LockRefusal {
            is_readable: false,
            ..refusal(format!("{error} with --data-dir"))
        },
    })?;
    let path = folder.join(LOCK_FILE);
    let mut file = opened.open_file(LOCK_FILE).map_err(|error| {
        refusal(match error.kind() {
            io::ErrorKind::ReadOnlyFilesystem => {
                "the directory is read-only: choose another with --data-dir".to_owned()
            }
            io::ErrorKind::StorageFull => "the disk is full: free some space".to_owned(),
            _ => format!(
                "{} cannot be opened ({error}): check its owner and permissions",
                path.display()
            ),
        })
    })?;
    let own = uname().nodename().to_string_lossy().into_owned();
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => {
            // The machine's name is written for gpumon on other machines that share the directory.
            // If it cannot be written, those machines do not read the history files.
            let _ = file
                .set_len(0)
                .and_then(|()| file.write_all(own.as_bytes()));
            Ok(file)
        }
        Err(Errno::WOULDBLOCK) => {
            let mut other = String::new();
            let _ = file.read_to_string(&mut other);
            let is_readable = other == own;
            let why = if is_readable {
                "another gpumon server writes its history to this directory, and this server only \
                 shows that history: give each server its own --data-dir"
                    .to_owned()
            } else {
                format!(
                    "gpumon on {other} writes its history to the same directory: choose a local \
                     directory with --data-dir"
                )
            };
            Err(LockRefusal {
                why,
                is_readable,
                is_anothers: true,
            })
        }
        Err(error) => Err(refusal(format!(
            "{} cannot be locked ({error}): choose a directory on a local disk with --data-dir",
            path.display()
        ))),
    }
}

// Handling of damaged database files, which are kept in the same directory under another name.

/// The suffixes of SQLite's companion files. These files are renamed before the database, so that
/// SQLite does not apply them to a new database.
const COMPANION_SUFFIXES: [&str; 2] = ["-wal", "-shm"];

/// Renames a damaged file, so that the file is kept and a new database can be created. Returns the
/// new name.
pub(super) fn rename_damaged_file(folder: &Path) -> io::Result<String> {
    let aside = format!("{FILE_NAME}.corrupt-{}", now_ms());
    for beside in COMPANION_SUFFIXES {
        let _ = fs::rename(
            folder.join(format!("{FILE_NAME}{beside}")),
            folder.join(format!("{aside}{beside}")),
        );
    }
    fs::rename(folder.join(FILE_NAME), folder.join(&aside))?;
    Ok(aside)
}

/// Returns the size of the write-ahead log in bytes.
pub(super) fn wal_bytes(folder: &Path) -> u64 {
    file_size(&folder.join(format!("{FILE_NAME}-wal")))
}

/// Deletes damaged files, the oldest first, until all files together are within the size limit. The
/// file `in_use`, which is being salvaged, is not deleted.
pub(super) fn delete_damaged_files(
    folder: &Path,
    size_bytes: u64,
    in_use: Option<&str>,
) -> io::Result<()> {
    let mut files: Vec<PathBuf> = fs::read_dir(folder)?
        .map(|entry| Ok(entry?.path()))
        .collect::<io::Result<_>>()?;
    let name = |path: &PathBuf| {
        path.file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned()
    };
    files.retain(|path| name(path).starts_with(FILE_NAME));
    let mut all: u64 = files.iter().map(|path| file_size(path)).sum();
    let (aside, is_kept) = (format!("{FILE_NAME}.corrupt-"), |path: &PathBuf| {
        in_use.is_some_and(|kept| name(path).starts_with(kept))
    });
    files.retain(|path| name(path).starts_with(&aside) && !is_kept(path));
    // The names contain times, so sorting puts the oldest file first.
    files.sort();
    for path in files {
        if all <= size_bytes {
            break;
        }
        all = all.saturating_sub(file_size(&path));
        fs::remove_file(path)?;
    }
    Ok(())
}

fn file_size(path: &Path) -> u64 {
    fs::metadata(path).map_or(0, |file| file.len())
}
