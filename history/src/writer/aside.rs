//! Handling of damaged database files, which are kept in the same directory under another name.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use gpumon_probe::model::now_ms;

use crate::database::FILE_NAME;

/// The suffixes of SQLite's companion files. These files are renamed before the database, so that
/// SQLite does not apply them to a new database.
const COMPANION_SUFFIXES: [&str; 2] = ["-wal", "-shm"];

/// Renames a damaged file, so that the file is kept and a new database can be created. Returns the
/// new name.
pub(super) fn move_aside(folder: &Path) -> io::Result<String> {
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
