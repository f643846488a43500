//! Conversion of NVML return codes to reasons for absence, and to error messages with suggested
//! fixes. This module also explains why the library cannot be loaded.

use std::path::Path;

use super::query::{Code, Value};
use crate::{
    model::Absence,
    surroundings::Surroundings,
    vendor::{DeviceError, SourceError},
};

pub(super) fn to_absence(code: Code) -> Absence {
    match code {
        Code::NOT_SUPPORTED | Code::FUNCTION_NOT_FOUND | Code::DEPRECATED => Absence::NotSupported,
        Code::NO_PERMISSION => Absence::NoPermission,
        Code::GPU_IS_LOST => Absence::GpuLost,
        Code::NO_DATA => Absence::Unknown,
        Code(code) => Absence::DriverError { code },
    }
}

/// Returns `true` if `code` means that the driver was unloaded or replaced after the library was
/// loaded.
pub(super) fn is_driver_replaced(code: Code) -> bool {
    matches!(
        code,
        Code::UNINITIALIZED | Code::DRIVER_NOT_LOADED | Code::VERSION_MISMATCH
    )
}

pub(super) fn to_device_error(code: Code) -> DeviceError {
    match code {
        Code::GPU_IS_LOST => DeviceError::Lost,
        code if is_driver_replaced(code) => driver_replaced_error(code.0),
        code => {
            let Explanation { meaning, cure } = explain(code.0, Surroundings::detect_current());
            let meaning = format!("{meaning} (NVML error {})", code.0);
            DeviceError::Failed {
                reason: to_absence(code),
                meaning,
                advice: cure.to_owned(),
            }
        }
    }
}

/// Returns the error for a driver that was unloaded or replaced.
pub(super) fn driver_replaced_error(code: u32) -> DeviceError {
    DeviceError::DriverReplaced {
        code,
        cause: to_source_error(code),
    }
}

/// The reason why a GPU or the driver cannot be used, and the suggested fix. Both texts are clauses
/// without an initial capital letter or a final period.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Explanation {
    /// The meaning of the return code.
    pub meaning: &'static str,
    /// The suggested fix.
    pub cure: &'static str,
}

const LOG_CURE: &str = "see `dmesg | grep -i nvrm`";

const RESET_CURE: &str = "stop the programs on the GPU, then run `gpumon pause` and `nvidia-smi \
                     --gpu-reset`; if that does not help, reboot";

/// The fix for a GPU that a container may no longer access. See the troubleshooting page of the
/// NVIDIA Container Toolkit.
const ACCESS_CURE: &str = "restart the container: `systemctl daemon-reload` on the host removes \
                              the GPUs from containers whose runtime uses the systemd cgroup \
                              driver; to prevent this, pass the GPUs by CDI, or run `nvidia-ctk \
                              system create-dev-char-symlinks --create-all` on the host at every \
                              boot";

/// Explains a code that the library's initialization returned, or that every call about a GPU
/// returned. `surroundings` determines the suggested fix.
pub fn explain(code: u32, surroundings: Surroundings) -> Explanation {
    let in_container = surroundings.container_name().is_some();
    let choose_cure = |on_machine, in_a_container| {
        if in_container {
            in_a_container
        } else {
            on_machine
        }
    };
    let (meaning, cure) = match Code(code) {
        Code::UNINITIALIZED => (
            "the driver was unloaded",
            "restart gpumon when the driver is loaded again",
        ),
        Code::NO_PERMISSION => (
            "the NVIDIA driver denies access to this user",
            choose_cure(
                "check the permissions of /dev/nvidia* and the user's groups; in a Slurm job, \
                 check that it requested the GPU",
                "check that the container was started with the GPU, and check the permissions of \
                 /dev/nvidia* and the user's groups",
            ),
        ),
        Code::NOT_FOUND => (
            "the driver cannot find the GPU",
            surroundings.missing_gpu_cure(),
        ),
        Code::INSUFFICIENT_POWER => (
            "the GPU's external power is missing",
            "switch the machine off and connect the GPU's power cables",
        ),
        Code::DRIVER_NOT_LOADED if surroundings == Surroundings::Wsl => (
            "the NVIDIA driver for Windows is not running",
            surroundings.missing_driver_cure(),
        ),
        Code::DRIVER_NOT_LOADED => (
            "NVIDIA's library is installed, but its kernel driver is not running",
            choose_cure(
                "load the kernel driver with `modprobe nvidia`, or reinstall it for this kernel",
                "load the kernel driver on the host with `modprobe nvidia`, then restart the \
                 container",
            ),
        ),
        Code::TIMEOUT => ("the driver did not respond in time", LOG_CURE),
        Code::IRQ_ISSUE => (
            "the kernel has a problem with the GPU's interrupts",
            LOG_CURE,
        ),
        Code::CORRUPTED_INFOROM => (
            "the GPU's InfoROM is corrupted",
            "have the board checked by its vendor",
        ),
        Code::GPU_IS_LOST => (
            "the GPU has fallen off the bus",
            "see `dmesg | grep -i xid`; reboot, and if it happens again, check the power supply \
             and the seating of the board",
        ),
        Code::RESET_REQUIRED => ("the GPU needs a reset", RESET_CURE),
        Code::OPERATING_SYSTEM if in_container => (
            "the container's device cgroup blocks the GPU",
            "start the container with this GPU",
        ),
        Code::OPERATING_SYSTEM => (
            "the system's device cgroup blocks the GPU",
            "in a Slurm job, request the GPU; in a systemd unit, allow /dev/nvidia* with \
             DeviceAllow=",
        ),
        Code::VERSION_MISMATCH => (
            "the NVIDIA library and the running kernel driver have different versions",
            choose_cure(
                "reboot, or reload the driver's kernel modules",
                "restart the container, so that it gets the library of the host's new driver",
            ),
        ),
        Code::UNKNOWN => ("an unknown error", choose_cure(LOG_CURE, ACCESS_CURE)),
        _ => ("a driver error", LOG_CURE),
    };
    Explanation { meaning, cure }
}

/// Explains why a GPU's readings are absent. Returns `None` if `reason` is not based on a return
/// code.
pub fn explain_absence(reason: &Absence, surroundings: Surroundings) -> Option<Explanation> {
    let code = match *reason {
        Absence::NoPermission => Code::NO_PERMISSION.0,
        Absence::GpuLost => Code::GPU_IS_LOST.0,
        Absence::DriverError { code } => code,
        _ => return None,
    };
    Some(explain(code, surroundings))
}

/// The library's file name, which is the same in every NVIDIA driver.
pub(super) const LIBRARY_NAME: &str = "libnvidia-ml.so.1";

/// Explains why the loader could not load the NVML library.
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
    let cure = Surroundings::detect_current().missing_driver_cure();
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
    let cure = Surroundings::detect_current().missing_gpu_cure();
    SourceError::NoDevice(format!(
        "the NVIDIA driver runs, but finds no GPU; {cure}, or try simulated GPUs with --source sim"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Surroundings; 8] = [
        Surroundings::Machine,
        Surroundings::Apptainer,
        Surroundings::Enroot,
        Surroundings::Kubernetes,
        Surroundings::Docker,
        Surroundings::Podman,
        Surroundings::Lxc,
        Surroundings::Wsl,
    ];

    #[test]
    fn permission_error_never_advises_reset_or_reboot() {
        for surroundings in ALL {
            for code in [Code::NO_PERMISSION, Code::OPERATING_SYSTEM] {
                let Explanation { cure, .. } = explain(code.0, surroundings);
                assert!(
                    !["reset", "reboot", "disable"]
                        .iter()
                        .any(|word| cure.contains(word)),
                    "{cure}"
                );
            }
        }
    }

    #[test]
    fn unknown_error_in_container_mentions_daemon_reload() {
        for surroundings in ALL {
            let names_cause = explain(999, surroundings)
                .cure
                .contains("systemctl daemon-reload");
            assert_eq!(
                names_cause,
                surroundings.container_name().is_some(),
                "{surroundings:?}"
            );
        }
    }

    #[test]
    fn advice_in_container_or_wsl_never_installs_driver() {
        for surroundings in ALL
            .into_iter()
            .filter(|surroundings| *surroundings != Surroundings::Machine)
        {
            for code in (1..=30).chain([999]) {
                let Explanation { cure, .. } = explain(code, surroundings);
                let is_wrong = |words: &str| cure.contains(words) && !cure.contains("on the host");
                assert!(
                    !is_wrong("modprobe") && !cure.contains("reinstall"),
                    "{surroundings:?} {code}: {cure}"
                );
            }
            assert!(
                !surroundings
                    .missing_driver_cure()
                    .contains("install the NVIDIA"),
                "{surroundings:?}"
            );
        }
    }

    #[test]
    fn only_absence_with_driver_code_is_explained() {
        assert_eq!(
            explain_absence(&Absence::NoAnswer, Surroundings::Machine),
            None
        );
        let reset =
            explain_absence(&Absence::DriverError { code: 16 }, Surroundings::Machine).unwrap();
        assert_eq!(
            reset,
            explain(Code::RESET_REQUIRED.0, Surroundings::Machine)
        );
    }
}
