//! How the library is found, and why it cannot be started.

use std::path::Path;

use super::error::advice;
use crate::vendor::{
    SourceError,
    nvml::query::{Code, Value},
};

/// The name by which every NVIDIA driver installs its library.
pub(super) const LIBRARY: &str = "libnvidia-ml.so.1";

/// What the loader has against it.
pub(super) fn not_loaded(library: &str, error: &libloading::Error) -> SourceError {
    let cause = std::error::Error::source(error).map_or_else(|| error.to_string(), ToString::to_string);
    no_library(library, &format!("{}{}", cause.trim_start_matches(&format!("{library}: ")), driver_hint()))
}

/// A library without the functions that everything begins with.
pub(super) fn incomplete_library(library: &str) -> SourceError {
    no_library(library, "it lacks nvmlInit_v2 or nvmlDeviceGetCount_v2, so it is not NVIDIA's, or a stub, or too old")
}

fn no_library(library: &str, cause: &str) -> SourceError {
    SourceError::NoLibrary(format!(
        "cannot load NVIDIA's management library {library}: {cause}; install the NVIDIA driver's utilities, \
         point --nvml-lib at libnvidia-ml.so.1, or try simulated GPUs with --source sim"
    ))
}

/// Where the kernel driver runs without its library, that is worth knowing: typically a container.
fn driver_hint() -> &'static str {
    if Path::new("/proc/driver/nvidia/version").exists() {
        " (the kernel driver runs; a container needs NVIDIA_DRIVER_CAPABILITIES=utility)"
    } else {
        " (no NVIDIA kernel driver runs either)"
    }
}

/// What an `nvmlReturn_t` means for the whole driver.
pub(in crate::vendor) fn source_error(code: u32) -> SourceError {
    match Code(code) {
        Code::DRIVER_NOT_LOADED => SourceError::NoDriver(
            "NVIDIA's library is installed, but its kernel driver is not running; load it with `modprobe nvidia` or \
             reinstall it for this kernel, or try simulated GPUs with --source sim"
                .to_owned(),
        ),
        Code::NO_PERMISSION => SourceError::NoPermission(
            "the NVIDIA driver refuses this user; check the permissions of /dev/nvidia* and the user's groups"
                .to_owned(),
        ),
        Code::VERSION_MISMATCH => SourceError::VersionMismatch(
            "the NVIDIA library and the running kernel driver are of different versions; reboot, or reload the \
             driver's kernel modules"
                .to_owned(),
        ),
        Code::NOT_FOUND => no_device(),
        code => SourceError::Driver(format!("the NVIDIA driver answers with NVML error {}; {}", code.0, advice(code))),
    }
}

pub(super) fn absurd_count(answer: &Value) -> SourceError {
    let count = answer.at(0).map_or_else(|| "no number".to_owned(), |count| count.to_string());
    SourceError::Driver(format!(
        "the NVIDIA driver reports {count} as the number of GPUs, which cannot be; check it with `nvidia-smi -L`, reload the \
         driver or reboot"
    ))
}

pub(in crate::vendor) fn no_device() -> SourceError {
    SourceError::NoDevice(
        "the NVIDIA driver runs, but it sees no GPU; check `lspci | grep -i nvidia`, and in a container that it was \
         started with GPUs (docker run --gpus all), or try simulated GPUs with --source sim"
            .to_owned(),
    )
}
