//! Runs NVIDIA's own nvidia-smi for the features that gpumon does not have.

use std::{
    env,
    ffi::OsString,
    fs,
    io::{self, Write},
    os::unix::{fs::MetadataExt, process::CommandExt},
    path::Path,
};

use gpumon_probe::{child, untrusted::escaped};
use rustix::fs::{Access, access};

/// The environment variable that lists the files that this chain of processes has already tried.
/// Without it, copies of gpumon and scripts that start gpumon would run each other forever.
const TRIED: &str = "GPUMON_SMI_TRIED";

/// Replaces this process by the first nvidia-smi in `PATH` that is not this program and was not
/// tried before. Returns if there is none.
pub(crate) fn exec(arguments: &[OsString]) {
    let Some(path) = env::var_os("PATH") else {
        return;
    };
    let mut tried: Vec<String> = env::var(TRIED)
        .iter()
        .flat_map(|list| list.split(','))
        .map(str::to_owned)
        .collect();
    tried.extend(identity(Path::new("/proc/self/exe")));
    for folder in env::split_paths(&path) {
        // An empty entry of `PATH` is the working directory. A path without a slash would be
        // searched for in `PATH` again.
        let program = Path::new(".").join(folder).join("nvidia-smi");
        let Some(identity) = identity(&program).filter(|identity| !tried.contains(identity)) else {
            continue;
        };
        if access(&program, Access::EXEC_OK).is_err() {
            continue;
        }
        tried.push(identity);
        let error = child::command(&program)
            .args(arguments)
            .env(TRIED, tried.join(","))
            .exec();
        let message = format!(
            "cannot run {}: {error}; repair it, or remove it from PATH",
            program.display()
        );
        // If standard error is closed, the refusal that follows still shows the error.
        let _ = writeln!(io::stderr(), "gpumon: {}", escaped(&message));
    }
}

/// Returns the device and inode numbers of a file, which are the same under all of its names.
/// `None` if the file does not exist.
fn identity(path: &Path) -> Option<String> {
    let metadata = fs::metadata(path).ok().filter(fs::Metadata::is_file)?;
    Some(format!("{}:{}", metadata.dev(), metadata.ino()))
}
