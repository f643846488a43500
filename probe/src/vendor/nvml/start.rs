//! Loading the library, and errors that prevent it from starting.

use std::path::Path;

use super::return_code::{Explanation, explain};
use crate::{
    surroundings::Surroundings,
    vendor::{
        SourceError,
        nvml::query::{Code, Value},
    },
};

/// The file name of the library in every NVIDIA driver.
pub(super) const LIBRARY: &str = "libnvidia-ml.so.1";

/// Explains why the loader could not load the library.
pub(super) fn not_loaded(library: &str, error: &libloading::Error) -> SourceError {
    let cause =
        std::error::Error::source(error).map_or_else(|| error.to_string(), ToString::to_string);
    no_library(
        library,
        &format!(
            "{}{}",
            cause.trim_start_matches(&format!("{library}: ")),
            driver_hint()
        ),
    )
}

/// Returns the error for a library that lacks essential functions.
pub(super) fn incomplete_library(library: &str) -> SourceError {
    no_library(
        library,
        "it lacks nvmlInit_v2 or nvmlDeviceGetCount_v2, so it is not NVIDIA's, or a stub, or too old",
    )
}

fn no_library(library: &str, cause: &str) -> SourceError {
    let cure = Surroundings::detect().driver_cure();
    SourceError::NoLibrary(format!(
        "cannot load NVIDIA's management library {library}: {cause}; {cure}, point --nvml-lib at libnvidia-ml.so.1, or try \
         simulated GPUs with --source sim"
    ))
}

/// Returns a note on whether the kernel driver runs. If only the library is missing, the process is
/// usually in a container.
fn driver_hint() -> &'static str {
    if Path::new("/proc/driver/nvidia/version").exists() {
        " (the kernel driver runs)"
    } else {
        " (no NVIDIA kernel driver runs either)"
    }
}

/// Explains an error code that the driver as a whole returns.
pub(super) fn source_error(code: u32) -> SourceError {
    let Explanation { meaning, cure } = explain(code, Surroundings::detect());
    let message = format!("{meaning}; {cure}");
    match Code(code) {
        Code::DRIVER_NOT_LOADED => SourceError::NoDriver(format!(
            "{message}, or try simulated GPUs with --source sim"
        )),
        Code::NO_PERMISSION => SourceError::NoPermission(message),
        Code::VERSION_MISMATCH => SourceError::VersionMismatch(message),
        Code::NOT_FOUND => no_device(),
        Code(code) => SourceError::Driver(format!(
            "the NVIDIA driver answers with NVML error {code}, {meaning}; {cure}"
        )),
    }
}

pub(super) fn absurd_count(answer: &Value) -> SourceError {
    let count = answer
        .at(0)
        .map_or_else(|| "no number".to_owned(), |count| count.to_string());
    SourceError::Driver(format!(
        "the NVIDIA driver reports {count} as the number of GPUs, which cannot be; check it with `nvidia-smi -L`, reload the \
         driver or reboot"
    ))
}

pub(super) fn no_device() -> SourceError {
    let cure = Surroundings::detect().gpu_cure();
    SourceError::NoDevice(format!(
        "the NVIDIA driver runs, but it sees no GPU; {cure}, or try simulated GPUs with --source sim"
    ))
}
