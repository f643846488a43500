//! Loading of the NVML library, and the errors that can prevent it.

use std::path::Path;

use super::return_code::{Explanation, explain};
use crate::{
    surroundings::Surroundings,
    vendor::{
        SourceError,
        nvml::query::{Code, Value},
    },
};

/// The library's file name, which is the same in every NVIDIA driver.
pub(super) const LIBRARY_NAME: &str = "libnvidia-ml.so.1";

/// Explains why the loader could not load the library.
pub(super) fn load_error(library: &str, error: &libloading::Error) -> SourceError {
    let cause =
        std::error::Error::source(error).map_or_else(|| error.to_string(), ToString::to_string);
    no_library_error(
        library,
        &format!(
            "{}{}",
            cause.trim_start_matches(&format!("{library}: ")),
            driver_hint()
        ),
    )
}

/// Returns the error for a library that lacks essential functions.
pub(super) fn incomplete_library_error(library: &str) -> SourceError {
    no_library_error(
        library,
        "it lacks nvmlInit_v2 or nvmlDeviceGetCount_v2, so it is not NVIDIA's library, is a stub, \
         or is too old",
    )
}

fn no_library_error(library: &str, cause: &str) -> SourceError {
    let cure = Surroundings::detect_current().driver_cure();
    SourceError::NoLibrary(format!(
        "cannot load NVIDIA's management library {library}: {cause}; {cure}, set --nvml-lib to the \
         path of libnvidia-ml.so.1, or try simulated GPUs with --source sim"
    ))
}

/// Returns a note on whether the kernel driver is loaded. If only the library is missing, the
/// process usually runs in a container.
fn driver_hint() -> &'static str {
    if Path::new("/proc/driver/nvidia/version").exists() {
        " (the kernel driver is loaded)"
    } else {
        " (no NVIDIA kernel driver is loaded either)"
    }
}

/// Explains a return code that concerns the driver as a whole.
pub(super) fn to_source_error(code: u32) -> SourceError {
    let Explanation { meaning, cure } = explain(code, Surroundings::detect_current());
    let message = format!("{meaning}; {cure}");
    match Code(code) {
        Code::DRIVER_NOT_LOADED => SourceError::NoDriver(format!(
            "{message}, or try simulated GPUs with --source sim"
        )),
        Code::NO_PERMISSION => SourceError::NoPermission(message),
        Code::VERSION_MISMATCH => SourceError::VersionMismatch(message),
        Code::NOT_FOUND => no_device_error(),
        Code(code) => SourceError::Driver(format!(
            "the NVIDIA driver returned NVML error {code} ({meaning}); {cure}"
        )),
    }
}

pub(super) fn absurd_count_error(answer: &Value) -> SourceError {
    let count = answer
        .number_at(0)
        .map_or_else(|| "no number".to_owned(), |count| count.to_string());
    SourceError::Driver(format!(
        "the NVIDIA driver reports an impossible number of GPUs ({count}); check the number with \
         `nvidia-smi -L`, reload the driver or reboot"
    ))
}

pub(super) fn no_device_error() -> SourceError {
    let cure = Surroundings::detect_current().gpu_cure();
    SourceError::NoDevice(format!(
        "the NVIDIA driver runs, but finds no GPU; {cure}, or try simulated GPUs with --source sim"
    ))
}
