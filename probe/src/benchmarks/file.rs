//! Reading and writing of the file, which is always replaced as a whole, by one process at a time.

use std::{ffi::OsStr, io, path::Path};

use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};

use super::{Benchmarks, MOST_GPUS};
use crate::{
    safe_file::{self, Folder, Owner, invalid},
    untrusted::escaped,
};

/// The name of the file in a data directory.
pub const FILE: &str = "benchmarks.json";

/// The version of the format. Other versions are not read.
const VERSION: u32 = 1;

/// The maximum size of the file in bytes. With all workloads in all types, a GPU has 60 kB,
/// including its latest results.
const MOST_BYTES: usize = 16 << 20;

#[derive(Serialize)]
struct Written<'a> {
    version: u32,
    gpus: &'a Benchmarks,
}

#[derive(Deserialize)]
struct Versioned {
    version: u32,
}

#[derive(Deserialize)]
struct Content {
    gpus: Benchmarks,
}

/// Reads a file. A missing file has no results.
///
/// # Errors
/// Returns an error if the file cannot be read, is damaged or too large, or has another version.
pub fn read(path: &Path) -> io::Result<Benchmarks> {
    parse(safe_file::read(path, MOST_BYTES)?)
}

fn parse(bytes: Option<Vec<u8>>) -> io::Result<Benchmarks> {
    let Some(bytes) = bytes else {
        return Ok(Benchmarks::default());
    };
    // The version is read first, because other versions may have another format.
    let Versioned { version } = serde_json::from_slice(&bytes)?;
    if version != VERSION {
        return Err(invalid(format!(
            "it is of version {version}, and {VERSION} is known"
        )));
    }
    let Content { gpus } = serde_json::from_slice(&bytes)?;
    if gpus.gpus.len() > MOST_GPUS {
        return Err(invalid(format!("it has more than {MOST_GPUS} GPUs")));
    }
    let mut results = gpus
        .gpus
        .values()
        .flat_map(|gpu| gpu.baseline.iter().chain(&gpu.latest));
    if let Some(result) = results.find(|result| !result.is_possible()) {
        let workload = escaped(&result.workload);
        return Err(invalid(format!(
            "it has a result of {workload:.80} that cannot be"
        )));
    }
    Ok(gpus)
}

/// Changes the content of a file atomically. Missing folders and files are created. Other processes
/// that change the file wait.
///
/// # Errors
/// Returns an error if the file cannot be read or written. The old content is kept.
pub fn change(path: &Path, change: impl FnOnce(&mut Benchmarks)) -> io::Result<()> {
    let name = path
        .file_name()
        .and_then(OsStr::to_str)
        .ok_or_else(|| invalid("it names no file"))?;
    let folder = path.parent().ok_or_else(|| invalid("it has no folder"))?;
    let folder = Folder::create(folder, Owner::AnyForRoot)?;
    // A failed lock is ignored, because some network file systems do not support locks, and two
    // runs at the same time are rare.
    let _ = flock(folder.handle(), FlockOperation::LockExclusive);
    let mut gpus = parse(folder.read(name, MOST_BYTES)?)?;
    change(&mut gpus);
    let bytes = serde_json::to_vec(&Written {
        version: VERSION,
        gpus: &gpus,
    })?;
    if bytes.len() > MOST_BYTES {
        return Err(invalid(format!(
            "it would have more than {MOST_BYTES} bytes"
        )));
    }
    folder.replace(name, &bytes)
}
