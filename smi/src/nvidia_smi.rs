//! NVIDIA's own nvidia-smi, which does what gpumon does not.

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

/// The files that were run before in this chain of processes: copies of gpumon, and scripts that
/// start it, would otherwise run each other for ever.
const TRIED: &str = "GPUMON_SMI_TRIED";

/// Becomes the first nvidia-smi in `PATH` that is neither this program nor was tried before;
/// returns where there is none.
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
        // An empty entry is the working directory; a path without a slash would be searched in
        // `PATH` again.
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
        // Where standard error is closed, the refusal that follows still tells.
        let _ = writeln!(io::stderr(), "gpumon: {}", escaped(&message));
    }
}

/// What tells a file from all others under whichever name; `None` where there is no file.
fn identity(path: &Path) -> Option<String> {
    let metadata = fs::metadata(path).ok().filter(fs::Metadata::is_file)?;
    Some(format!("{}:{}", metadata.dev(), metadata.ino()))
}
