//! Damaged files, which are kept beside the one that is written.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use gpumon_probe::model::now_ms;

use crate::database::FILE;

/// What SQLite has beside a database. These go first: what they hold must not get into a new one.
const BESIDE: [&str; 2] = ["-wal", "-shm"];

/// Keeps a damaged file for whoever can read it, and makes room for a new one; says how it is
/// called now.
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

/// Bytes of what is not yet in the database itself.
pub(super) fn wal_bytes(folder: &Path) -> u64 {
    bytes(&folder.join(format!("{FILE}-wal")))
}

/// Deletes damaged files, the oldest first, while all that is there is larger than it may be; not
/// the one of which rows are still read.
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
    // Their names have their times.
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
