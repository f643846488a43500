//! What the targets share.

use std::{
    env, fs,
    path::{Path, PathBuf},
};

use gpumon_probe::model::{Absence, Process, ProcessKind, Reading};

/// A folder in memory of this process alone, since a file of a target is written thousands of times a second. Those of
/// processes that are gone are removed: a fuzzer ends without tidying up.
pub fn scratch(name: &str) -> PathBuf {
    let memory = PathBuf::from("/dev/shm");
    let root = if memory.is_dir() { memory } else { env::temp_dir() };
    for folder in fs::read_dir(&root).into_iter().flatten().flatten() {
        let folder_name = folder.file_name().to_string_lossy().into_owned();
        let owner = folder_name.strip_prefix("gpumon-fuzz-").and_then(|rest| rest.rsplit_once('-'));
        if owner.is_some_and(|(_, pid)| !Path::new("/proc").join(pid).exists()) {
            let _ = fs::remove_dir_all(folder.path());
        }
    }
    let folder = root.join(format!("gpumon-fuzz-{name}-{}", std::process::id()));
    fs::create_dir_all(&folder).expect("a scratch folder");
    folder
}

/// A process as the driver lists it, of which nothing else is known yet.
pub fn process(pid: u32) -> Process {
    let unknown = || Reading::Absent(Absence::NoAnswer);
    Process {
        pid,
        kind: ProcessKind::Compute,
        memory_bytes: Reading::Now(1),
        sm_percent: Reading::Now(0.0),
        memory_percent: Reading::Now(0.0),
        encoder_percent: Reading::Now(0.0),
        decoder_percent: Reading::Now(0.0),
        name: unknown(),
        command: unknown(),
        user: unknown(),
        started_ms: Reading::Absent(Absence::NoAnswer),
        mig: None,
        mps: false,
        owner: Reading::Absent(Absence::NoAnswer),
    }
}
