//! Damaged files, which are kept beside the one that is written.

use std::{fs, io, path::Path};

use gpumon_probe::model::now_ms;

use crate::database::FILE;

/// What SQLite has beside a database. These go first: what they hold must not get into a new one.
const BESIDE: [&str; 2] = ["-wal", "-shm"];

/// Keeps a damaged file for whoever can read it, and makes room for a new one; says how it is called now.
pub(super) fn move_aside(folder: &Path) -> io::Result<String> {
    let aside = format!("{FILE}.corrupt-{}", now_ms());
    for beside in BESIDE {
        let _ = fs::rename(folder.join(format!("{FILE}{beside}")), folder.join(format!("{aside}{beside}")));
    }
    fs::rename(folder.join(FILE), folder.join(&aside))?;
    Ok(aside)
}
