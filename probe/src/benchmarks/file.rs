//! Reading and writing of the benchmark file, which is always replaced as a whole, by one process
//! at a time.

use std::{ffi::OsStr, io, path::Path};

use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};

use super::{Benchmarks, MAX_GPUS};
use crate::{
    safe_file::{self, AcceptedOwner, Folder, invalid_data},
    untrusted::escape_untrusted,
};

/// The name of the benchmark file in a data directory.
pub const FILE_NAME: &str = "benchmarks.json";

/// The version of the file format. Files with other versions are not read.
const VERSION: u32 = 1;

/// The maximum size of the file in bytes. One GPU with results for all workloads and types takes 60
/// kB.
const MAX_BYTES: usize = 16 << 20;

#[derive(Serialize)]
struct WrittenFile<'a> {
    version: u32,
    gpus: &'a Benchmarks,
}

#[derive(Deserialize)]
struct FileVersion {
    version: u32,
}

#[derive(Deserialize)]
struct Content {
    gpus: Benchmarks,
}

/// Reads a file. If the file does not exist, returns no results.
///
/// # Errors
/// Returns an error if the file cannot be read, is damaged or too large, or has another version.
pub fn read(path: &Path) -> io::Result<Benchmarks> {
    parse(safe_file::read(path, MAX_BYTES)?)
}

fn parse(bytes: Option<Vec<u8>>) -> io::Result<Benchmarks> {
    let Some(bytes) = bytes else {
        return Ok(Benchmarks::default());
    };
    // The version is parsed first, because other versions may have another format.
    let FileVersion { version } = serde_json::from_slice(&bytes)?;
    if version != VERSION {
        return Err(invalid_data(format!(
            "the file has format version {version}, but this gpumon supports version {VERSION}"
        )));
    }
    let Content { gpus } = serde_json::from_slice(&bytes)?;
    if gpus.gpus.len() > MAX_GPUS {
        return Err(invalid_data(format!(
            "the file has more than {MAX_GPUS} GPUs"
        )));
    }
    let mut results = gpus
        .gpus
        .values()
        .flat_map(|gpu| gpu.baseline.iter().chain(&gpu.latest));
    if let Some(result) = results.find(|result| !result.is_plausible()) {
        let workload = escape_untrusted(&result.workload);
        return Err(invalid_data(format!(
            "the file contains an impossible result for {workload:.80}"
        )));
    }
    Ok(gpus)
}

/// Changes the content of a file atomically, while other processes wait. A missing file and its
/// folders are created.
///
/// # Errors
/// Returns an error if the file cannot be read or written. In that case, the file is not changed.
pub fn change(path: &Path, change: impl FnOnce(&mut Benchmarks)) -> io::Result<()> {
    let name = path
        .file_name()
        .and_then(OsStr::to_str)
        .ok_or_else(|| invalid_data("the path does not name a file"))?;
    let folder = path
        .parent()
        .ok_or_else(|| invalid_data("the path has no directory"))?;
    let folder = Folder::create(folder, AcceptedOwner::AnyForRoot)?;
    // A failed lock is ignored, because some network file systems do not support locks, and
    // concurrent runs are rare.
    let _ = flock(folder.handle(), FlockOperation::LockExclusive);
    let mut gpus = parse(folder.read(name, MAX_BYTES)?)?;
    change(&mut gpus);
    let bytes = serde_json::to_vec(&WrittenFile {
        version: VERSION,
        gpus: &gpus,
    })?;
    if bytes.len() > MAX_BYTES {
        return Err(invalid_data(format!(
            "the file would be larger than {MAX_BYTES} bytes"
        )));
    }
    folder.replace(name, &bytes)
}
