//! Explanations and suggested fixes for NVML return codes that concern a whole GPU or the driver.

use super::query::Code;
use crate::{model::Absence, surroundings::Surroundings};

/// The reason why a GPU or the driver cannot be used, and a fix. Both texts are clauses without an
/// initial capital letter or a final period.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Explanation {
    /// The meaning of the return code.
    pub meaning: &'static str,
    /// The suggested fix.
    pub cure: &'static str,
}

const LOGGED: &str = "see `dmesg | grep -i nvrm`";

const RESET: &str = "stop the programs on the GPU, then run `gpumon pause` and `nvidia-smi \
                     --gpu-reset`; if that does not help, reboot";

/// The fix for a GPU that a container may no longer access. See the troubleshooting page of the
/// NVIDIA Container Toolkit.
const ACCESS_REVOKED: &str = "restart the container: `systemctl daemon-reload` on the host removes \
                              the GPUs from containers whose runtime uses the systemd cgroup \
                              driver; to prevent this, pass the GPUs by CDI, or run `nvidia-ctk \
                              system create-dev-char-symlinks --create-all` on the host at every \
                              boot";

/// Explains a return code of the library's initialization, or of every call about a GPU.
/// `surroundings` determines the suggested fix.
pub fn explain(code: u32, surroundings: Surroundings) -> Explanation {
    let in_container = surroundings.container_name().is_some();
    let (meaning, cure) = match (Code(code), in_container) {
        (Code::UNINITIALIZED, _) => (
            "the driver was unloaded",
            "restart gpumon when the driver is loaded again",
        ),
        (Code::NO_PERMISSION, false) => (
            "the NVIDIA driver denies access to this user",
            "check the permissions of /dev/nvidia* and the user's groups; in a Slurm job, check \
             that it requested the GPU",
        ),
        (Code::NO_PERMISSION, true) => (
            "the NVIDIA driver denies access to this user",
            "check that the container was started with the GPU, and check the permissions of \
             /dev/nvidia* and the user's groups",
        ),
        (Code::NOT_FOUND, _) => ("the driver cannot find the GPU", surroundings.gpu_cure()),
        (Code::INSUFFICIENT_POWER, _) => (
            "the GPU's external power is missing",
            "switch the machine off and connect the GPU's power cables",
        ),
        (Code::DRIVER_NOT_LOADED, false) if surroundings == Surroundings::Wsl => (
            "the NVIDIA driver for Windows is not running",
            surroundings.driver_cure(),
        ),
        (Code::DRIVER_NOT_LOADED, false) => (
            "NVIDIA's library is installed, but its kernel driver is not running",
            "load the kernel driver with `modprobe nvidia`, or reinstall it for this kernel",
        ),
        (Code::DRIVER_NOT_LOADED, true) => (
            "NVIDIA's library is installed, but its kernel driver is not running",
            "load the kernel driver on the host with `modprobe nvidia`, then restart the container",
        ),
        (Code::TIMEOUT, _) => ("the driver did not respond in time", LOGGED),
        (Code::IRQ_ISSUE, _) => ("the kernel has a problem with the GPU's interrupts", LOGGED),
        (Code::CORRUPTED_INFOROM, _) => (
            "the GPU's InfoROM is corrupted",
            "have the board checked by its vendor",
        ),
        (Code::GPU_IS_LOST, _) => (
            "the GPU has fallen off the bus",
            "see `dmesg | grep -i xid`; reboot, and if it happens again, check the power supply \
             and the seating of the board",
        ),
        (Code::RESET_REQUIRED, _) => ("the GPU needs a reset", RESET),
        (Code::OPERATING_SYSTEM, false) => (
            "the system's device cgroup blocks the GPU",
            "in a Slurm job, request the GPU; in a systemd unit, allow /dev/nvidia* with \
             DeviceAllow=",
        ),
        (Code::OPERATING_SYSTEM, true) => (
            "the container's device cgroup blocks the GPU",
            "start the container with this GPU",
        ),
        (Code::VERSION_MISMATCH, false) => (
            "the NVIDIA library and the running kernel driver have different versions",
            "reboot, or reload the driver's kernel modules",
        ),
        (Code::VERSION_MISMATCH, true) => (
            "the NVIDIA library and the running kernel driver have different versions",
            "restart the container, so that it gets the library of the host's new driver",
        ),
        (Code::UNKNOWN, true) => ("an unknown error", ACCESS_REVOKED),
        (Code::UNKNOWN, false) => ("an unknown error", LOGGED),
        _ => ("a driver error", LOGGED),
    };
    Explanation { meaning, cure }
}

/// Explains why a GPU's readings are absent. Returns `None` if `reason` does not contain a return
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
                !surroundings.driver_cure().contains("install the NVIDIA"),
                "{surroundings:?}"
            );
        }
    }

    #[test]
    fn readings_without_code_have_no_explanation() {
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
