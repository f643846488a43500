//! Functions that all fuzz targets use.

use std::{
    env, fs,
    path::{Path, PathBuf},
};

/// Returns a folder of this process on a file system in memory, because a fuzz target writes its
/// file thousands of times a second. A fuzzer does not clean up when it ends, so the folders of
/// ended processes are removed here.
pub fn make_scratch_folder(name: &str) -> PathBuf {
    let memory = PathBuf::from("/dev/shm");
    let root = if memory.is_dir() {
        memory
    } else {
        env::temp_dir()
    };
    for folder in fs::read_dir(&root).into_iter().flatten().flatten() {
        let folder_name = folder.file_name().to_string_lossy().into_owned();
        let owner = folder_name
            .strip_prefix("gpumon-fuzz-")
            .and_then(|rest| rest.rsplit_once('-'));
        if owner.is_some_and(|(_, pid)| !Path::new("/proc").join(pid).exists()) {
            let _ = fs::remove_dir_all(folder.path());
        }
    }
    let folder = root.join(format!("gpumon-fuzz-{name}-{}", std::process::id()));
    fs::create_dir_all(&folder).expect("a scratch folder");
    folder
}
