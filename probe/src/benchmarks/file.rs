//! The file: read whole, replaced whole, by one process at a time.

use std::{ffi::OsStr, io, path::Path};

use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};

use super::{Benchmarks, MOST_GPUS};
use crate::{
    safe_file::{self, Folder, Owner, invalid},
    untrusted::escaped,
};

/// What it is called in a data directory.
pub const FILE: &str = "benchmarks.json";

/// What it looks like; another is not read.
const VERSION: u32 = 1;

/// Every workload in every type takes 60 kB of a GPU, with its latest results.
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

/// What a file has. There may be none yet.
///
/// # Errors
/// Where it cannot be read, or is broken, too large or of another version.
pub fn read(path: &Path) -> io::Result<Benchmarks> {
    parse(safe_file::read(path, MOST_BYTES)?)
}

fn parse(bytes: Option<Vec<u8>>) -> io::Result<Benchmarks> {
    let Some(bytes) = bytes else {
        return Ok(Benchmarks::default());
    };
    // Another version may look like nothing that is known.
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

/// Changes what a file has: the whole file, or nothing of it. Folder and file are made where there
/// is none. Other processes that change it wait meanwhile.
///
/// # Errors
/// Where it cannot be read or written. What it had stays.
pub fn change(path: &Path, change: impl FnOnce(&mut Benchmarks)) -> io::Result<()> {
    let name = path
        .file_name()
        .and_then(OsStr::to_str)
        .ok_or_else(|| invalid("it names no file"))?;
    let folder = path.parent().ok_or_else(|| invalid("it has no folder"))?;
    let folder = Folder::create(folder, Owner::AnyForRoot)?;
    // Some file systems of a network lock no folders; two runs at a time are rarer than these.
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
