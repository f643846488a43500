//! Damaged database files, which are kept in the same directory.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use gpumon_probe::model::now_ms;

use crate::database::FILE;

/// The suffixes of SQLite's companion files. They are moved first, so that their contents do not
/// get into a new database.
const BESIDE: [&str; 2] = ["-wal", "-shm"];

/// Renames a damaged file, so that it is kept and a new one can be created. Returns its new name.
pub(super) fn move_aside(folder: &Path) -> io::Result<String> {
    let aside = format!("{FILE}.corrupt-{}", now_ms());
    for beside in BESIDE {
        let _ = fs::rename(
            folder.join(format!("{FILE}{beside}")),
            folder.join(format!("{aside}{beside}")),
        );
    }
    fs::rename(folder.join(FILE), folder.join(&aside))?;
    Ok(aside)
}

/// Returns the size of the write-ahead log in bytes.
pub(super) fn wal_bytes(folder: &Path) -> u64 {
    bytes(&folder.join(format!("{FILE}-wal")))
}

/// Deletes damaged files, the oldest first, until all files together are within the size limit. The
/// file in use by a salvage is not deleted.
pub(super) fn forget_damaged(
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
    files.retain(|path| name(path).starts_with(FILE));
    let mut all: u64 = files.iter().map(|path| bytes(path)).sum();
    let (aside, is_kept) = (format!("{FILE}.corrupt-"), |path: &PathBuf| {
        in_use.is_some_and(|kept| name(path).starts_with(kept))
    });
    files.retain(|path| name(path).starts_with(&aside) && !is_kept(path));
    // The names contain the times, so that the oldest is first.
    files.sort();
    for path in files {
        if all <= size_bytes {
            break;
        }
        all = all.saturating_sub(bytes(&path));
        fs::remove_file(path)?;
    }
    Ok(())
}

fn bytes(path: &Path) -> u64 {
    fs::metadata(path).map_or(0, |file| file.len())
}
