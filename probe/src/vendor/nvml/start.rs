//! How the library is found, and why it cannot be started.

use std::path::Path;

use nvml_wrapper::error::NvmlError;

use super::error;
use crate::vendor::SourceError;

/// The name by which every NVIDIA driver installs its library.
pub(super) const LIBRARY: &str = "libnvidia-ml.so.1";

/// What a failed start means.
pub(super) fn start_error(library: &str, error: &NvmlError) -> SourceError {
    let no_library = |cause: String| SourceError::NoLibrary { library: library.to_owned(), cause };
    match error {
        NvmlError::LibloadingError(loader) => {
            let cause = std::error::Error::source(loader).map_or_else(|| loader.to_string(), ToString::to_string);
            no_library(format!("{}{}", cause.trim_start_matches(&format!("{library}: ")), driver_hint()))
        }
        NvmlError::FailedToLoadSymbol(_) => {
            let missing = "it lacks nvmlInit_v2 or nvmlDeviceGetCount_v2, so it is not NVIDIA's, or a stub, or too old";
            no_library(missing.to_owned())
        }
        error => driver_error(error),
    }
}

/// Where the kernel driver runs without its library, that is worth knowing: typically a container.
fn driver_hint() -> &'static str {
    if Path::new("/proc/driver/nvidia/version").exists() {
        " (the kernel driver runs; a container needs NVIDIA_DRIVER_CAPABILITIES=utility)"
    } else {
        " (no NVIDIA kernel driver runs either)"
    }
}

fn driver_error(error: &NvmlError) -> SourceError {
    match error {
        NvmlError::DriverNotLoaded => SourceError::NoDriver,
        NvmlError::NoPermission => SourceError::NoPermission,
        NvmlError::LibRmVersionMismatch => SourceError::VersionMismatch,
        NvmlError::NotFound => SourceError::NoDevice,
        error => SourceError::Driver { code: error::code(error) },
    }
}
