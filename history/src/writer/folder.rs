//! The directory of a history, and the lock for writing to it.

use std::{
    fs::File,
    io::{self, Read, Write},
    path::Path,
};

use gpumon_probe::safe_file::{Folder, FolderError, Owner};
use rustix::{
    fs::{FlockOperation, flock},
    io::Errno,
    system::uname,
};

const LOCK: &str = "history.lock";

/// The reason why a directory cannot be written to.
pub(super) struct Refusal {
    pub(super) why: String,
    /// Whether the files can be read. If another machine writes them, they cannot: SQLite keeps new
    /// rows in shared memory, which machines do not share.
    pub(super) is_readable: bool,
    /// Whether another process writes to the directory.
    pub(super) is_anothers: bool,
}

/// Creates the directory for this user only, and locks it for writing.
pub(super) fn lock(folder: &Path) -> Result<File, Refusal> {
    let refusal = |why: String| Refusal {
        why,
        is_readable: true,
        is_anothers: false,
    };
    let opened = Folder::create(folder, Owner::Own).map_err(|error| match error {
        FolderError::Unavailable { cause, .. } => refusal(format!(
            "the directory cannot be created or opened ({cause}): name another with --data-dir"
        )),
        // The files may be from another user, so they are not read.
        error => Refusal {
            is_readable: false,
            ..refusal(format!("{error} with --data-dir"))
        },
    })?;
    let path = folder.join(LOCK);
    let mut file = opened.open_file(LOCK).map_err(|error| {
        refusal(match error.kind() {
            io::ErrorKind::ReadOnlyFilesystem => {
                "it is read-only: name another directory with --data-dir".to_owned()
            }
            io::ErrorKind::StorageFull => "the disk is full: free some space".to_owned(),
            _ => format!(
                "{} cannot be opened ({error}): check owner and permissions",
                path.display()
            ),
        })
    })?;
    let own = uname().nodename().to_string_lossy().into_owned();
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => {
            // The name of this machine is for gpumon on other machines that share the directory. If
            // it cannot be written, they do not read the files.
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
                "another gpumon writes its history there, which is shown: give each its own --data-dir".to_owned()
            } else {
                format!(
                    "the gpumon of {other} writes its history there: name a directory of this machine with --data-dir"
                )
            };
            Err(Refusal {
                why,
                is_readable,
                is_anothers: true,
            })
        }
        Err(error) => Err(refusal(format!(
            "{} cannot be locked ({error}): name a directory on a local disk with --data-dir",
            path.display()
        ))),
    }
}
