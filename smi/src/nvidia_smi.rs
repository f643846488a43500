//! Runs NVIDIA's own nvidia-smi for features that gpumon does not support.

use std::{
    env,
    ffi::OsString,
    fs,
    io::{self, Write},
    os::unix::{fs::MetadataExt, process::CommandExt},
    path::Path,
};

use gpumon_probe::{child, untrusted::escape_untrusted};
use rustix::fs::{Access, access};

/// The environment variable that lists the files that this chain of processes has already tried to
/// run. Without it, copies of gpumon, or scripts that start gpumon, would run each other forever.
const TRIED_VARIABLE: &str = "GPUMON_SMI_TRIED";

/// Replaces this process with the first nvidia-smi in `PATH` that is not gpumon and has not been
/// tried before. Returns if there is none.
pub(crate) fn replace_with_nvidia_smi(arguments: &[OsString]) {
    let Some(path) = env::var_os("PATH") else {
        return;
    };
    let mut tried: Vec<String> = env::var(TRIED_VARIABLE)
        .iter()
        .flat_map(|list| list.split(','))
        .map(str::to_owned)
        .collect();
    tried.extend(read_file_identity(Path::new("/proc/self/exe")));
    for folder in env::split_paths(&path) {
        // An empty entry in `PATH` stands for the working directory. The path must contain a slash,
        // because otherwise `exec` would search `PATH` again.
        let program = Path::new(".").join(folder).join("nvidia-smi");
        let Some(identity) =
            read_file_identity(&program).filter(|identity| !tried.contains(identity))
        else {
            continue;
        };
        if access(&program, Access::EXEC_OK).is_err() {
            continue;
        }
        tried.push(identity);
        let error = child::new_command(&program)
            .args(arguments)
            .env(TRIED_VARIABLE, tried.join(","))
            .exec();
        let message = format!(
            "cannot run {}: {error}; repair it, or remove it from PATH",
            program.display()
        );
        // If standard error is closed, the error is lost, but the refusal is still shown.
        let _ = writeln!(io::stderr(), "gpumon: {}", escape_untrusted(&message));
    }
}

/// Returns a file's device and inode number, which are the same for all hard links. Returns `None`
/// if the file does not exist.
fn read_file_identity(path: &Path) -> Option<String> {
    let metadata = fs::metadata(path).ok().filter(fs::Metadata::is_file)?;
    Some(format!("{}:{}", metadata.dev(), metadata.ino()))
}
