//! Whether the kernel's log can be read, where the driver writes errors that it reports nowhere else.

use std::io::{self, ErrorKind};

use gpumon_probe::{
    surroundings::Surroundings,
    vendor::{KERNEL_LOG, check_kernel_log},
};
use rustix::process::geteuid;

use super::{finding::Finding, machine::Machine};

pub(super) fn check(machine: &Machine, uses_nvidia: bool) -> Finding {
    let missed = if uses_nvidia {
        "Xids which NVML does not report (79, 119, 120)"
    } else {
        "errors of the drivers"
    };
    match check_kernel_log(&machine.path(KERNEL_LOG)) {
        Ok(()) => Finding::ok("kernel log", "readable, so that every error is seen"),
        Err(error) => Finding::note(
            "kernel log",
            format!("{KERNEL_LOG} cannot be read ({error}), so that {missed} are missed"),
        )
        .with_cure(cure(machine.surroundings(), &error, geteuid().is_root())),
    }
}

fn cure(surroundings: Surroundings, error: &io::Error, is_root: bool) -> &'static str {
    match surroundings {
        Surroundings::Docker => {
            "pass the device to the container, and read it as root: `docker run --device /dev/kmsg --cap-add SYSLOG --user 0`"
        }
        Surroundings::Podman => {
            "pass the device to the container, and read it as root: `podman run --device /dev/kmsg --cap-add SYSLOG --user 0`, \
             started by root"
        }
        Surroundings::Kubernetes => {
            "mount /dev/kmsg of the node into the pod (hostPath), and run its container as root and privileged"
        }
        Surroundings::Lxc => "pass the device to the container, which must be privileged",
        Surroundings::Apptainer | Surroundings::Enroot => {
            "mount /dev/kmsg of the host into the container, and set kernel.dmesg_restrict to 0 on the host"
        }
        Surroundings::Wsl => "the driver of Windows writes no Xids there",
        Surroundings::Machine if error.kind() == ErrorKind::NotFound => {
            "create it (`mknod /dev/kmsg c 1 11`), or pass it to the container"
        }
        Surroundings::Machine if is_root => "give gpumon CAP_SYSLOG, which this root lacks",
        Surroundings::Machine => {
            "run gpumon as root or with CAP_SYSLOG, or set kernel.dmesg_restrict to 0"
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn root_is_never_advised_to_become_root() {
        for (surroundings, kind, words) in [
            (
                Surroundings::Docker,
                ErrorKind::NotFound,
                "docker run --device /dev/kmsg",
            ),
            (
                Surroundings::Docker,
                ErrorKind::PermissionDenied,
                "--cap-add SYSLOG",
            ),
            (
                Surroundings::Podman,
                ErrorKind::NotFound,
                "podman run --device /dev/kmsg",
            ),
            (Surroundings::Kubernetes, ErrorKind::NotFound, "hostPath"),
            (
                Surroundings::Apptainer,
                ErrorKind::PermissionDenied,
                "dmesg_restrict",
            ),
            (Surroundings::Machine, ErrorKind::NotFound, "mknod"),
            (
                Surroundings::Machine,
                ErrorKind::PermissionDenied,
                "CAP_SYSLOG",
            ),
        ] {
            let cure = cure(surroundings, &kind.into(), true);
            assert!(
                cure.contains(words) && !cure.contains("run gpumon as root"),
                "{surroundings:?} {kind}: {cure}"
            );
        }
        let user = cure(
            Surroundings::Machine,
            &ErrorKind::PermissionDenied.into(),
            false,
        );
        assert!(user.contains("run gpumon as root"), "{user}");
    }
}
