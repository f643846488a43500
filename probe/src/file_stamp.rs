//! Detection of changed files.

use std::{fs, os::unix::fs::MetadataExt, path::Path};

/// The identity, size and times of a file, which differ if the file has changed or was replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileStamp([u64; 3], [i64; 4]);

impl FileStamp {
    /// Returns the stamp of a file, or `None` if there is no such file.
    pub fn read(path: &Path) -> Option<Self> {
        let file = fs::metadata(path).ok()?;
        Some(Self(
            [file.dev(), file.ino(), file.size()],
            [
                file.mtime(),
                file.mtime_nsec(),
                file.ctime(),
                file.ctime_nsec(),
            ],
        ))
    }
}
