//! Checks of gpumon's environment: a container, another PID namespace, or WSL.

use std::io::{self, ErrorKind};

use gpumon_probe::{
    model::GpuSample,
    surroundings::Surroundings,
    vendor::{self, KERNEL_LOG},
};
use rustix::process::geteuid;

use super::{finding::Finding, machine::Machine};
use crate::{
    describe::format_unlisted_processes,
    driver::{DriverAnswer, DriverState},
};

pub(super) fn check_surroundings(machine: &Machine, driver: &DriverState) -> Vec<Finding> {
    let mut findings = Vec::new();
    if machine.is_wsl() {
        let text = "this is WSL: its driver reports no processes and lacks most of the readings \
                    listed below";
        findings.push(Finding::new_note("wsl", text));
    }
    if let Some(container) = machine.surroundings().container_name() {
        findings.push(Finding::new_note(
            "container",
            format!("gpumon runs in a container ({container})"),
        ));
    }
    findings.extend(
        driver
            .answer()
            .map(|answer| check_processes(machine, answer)),
    );
    findings
}

/// Checks that the PIDs that the driver reports exist in this machine's `/proc`.
fn check_processes(machine: &Machine, answer: &DriverAnswer) -> Finding {
    let processes: Vec<_> = answer
        .gpus()
        .filter_map(|gpu: &GpuSample| gpu.processes.value())
        .flatten()
        .collect();
    let strange = processes
        .iter()
        .filter(|process| !machine.roots().proc.join(process.pid.to_string()).exists());
    let strange: Vec<_> = strange.map(|process| process.pid.to_string()).collect();
    let cure = "in a container, share the host's PIDs (docker run --pid=host, or hostPID: true in \
                the pod)";
    let unlisted = answer.gpus().filter_map(|gpu| {
        Some(format!(
            "GPU {}: {}",
            gpu.index,
            format_unlisted_processes(gpu)?
        ))
    });
    let unlisted = unlisted.collect::<Vec<_>>().join("; ");
    if !unlisted.is_empty() {
        return Finding::new_warning("processes", unlisted, cure);
    }
    if strange.is_empty() {
        return Finding::new_ok(
            "processes",
            format!("{} on the GPUs, all found in /proc", processes.len()),
        );
    }
    let some = strange
        .iter()
        .take(5)
        .cloned()
        .collect::<Vec<_>>()
        .join(", ");
    let more = if strange.len() > 5 { ", ..." } else { "" };
    let text = format!(
        "{} of {} on the GPUs are not in this /proc (PID {some}{more}), so their users are unknown",
        strange.len(),
        processes.len()
    );
    Finding::new_warning("processes", text, cure)
}

pub(super) fn check_kernel_log(machine: &Machine, uses_nvidia: bool) -> Finding {
    let missed = if uses_nvidia {
        "Xids that NVML does not report (79, 119, 120)"
    } else {
        "driver errors"
    };
    match vendor::check_kernel_log(&machine.resolve_path(KERNEL_LOG)) {
        Ok(()) => Finding::new_ok("kernel log", "readable, so all driver errors are reported"),
        Err(error) => Finding::new_note(
            "kernel log",
            format!("{KERNEL_LOG} cannot be read ({error}), so {missed} are missed"),
        )
        .with_cure(find_log_cure(
            machine.surroundings(),
            &error,
            geteuid().is_root(),
        )),
    }
}

fn find_log_cure(surroundings: Surroundings, error: &io::Error, is_root: bool) -> &'static str {
    match surroundings {
        Surroundings::Docker => {
            "pass /dev/kmsg to the container, and run the container as root: `docker run --device \
             /dev/kmsg --cap-add SYSLOG --user 0`"
        }
        Surroundings::Podman => {
            "as root, start the container with /dev/kmsg: `podman run --device /dev/kmsg --cap-add \
             SYSLOG --user 0`"
        }
        Surroundings::Kubernetes => {
            "mount /dev/kmsg of the node into the pod (hostPath), and run its container as root \
             and privileged"
        }
        Surroundings::Lxc => "pass /dev/kmsg to the container, which must be privileged",
        Surroundings::Apptainer | Surroundings::Enroot => {
            "mount /dev/kmsg of the host into the container, and set kernel.dmesg_restrict to 0 on \
             the host"
        }
        Surroundings::Wsl => "the Windows driver writes no Xids to the kernel log",
        Surroundings::Machine if error.kind() == ErrorKind::NotFound => {
            "create /dev/kmsg (`mknod /dev/kmsg c 1 11`), or pass it to the container"
        }
        Surroundings::Machine if is_root => "give gpumon CAP_SYSLOG, which root lacks here",
        Surroundings::Machine => {
            "run gpumon as root or with CAP_SYSLOG, or set kernel.dmesg_restrict to 0"
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn container_in_wsl_is_noted_with_both_names() {
        let root = tempfile::tempdir().unwrap();
        let machine = Machine::with_root(root.path());
        assert_eq!(check_surroundings(&machine, &DriverState::Silent).len(), 0);
        fs::create_dir_all(root.path().join("proc/sys/kernel")).unwrap();
        fs::write(
            root.path().join("proc/sys/kernel/osrelease"),
            "5.15.90.1-microsoft-standard-WSL2\n",
        )
        .unwrap();
        fs::write(root.path().join(".dockerenv"), "").unwrap();
        let checks: Vec<_> = check_surroundings(&machine, &DriverState::Silent)
            .into_iter()
            .map(|finding| finding.check)
            .collect();
        assert_eq!(checks, ["wsl", "container"]);
    }

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
            let cure = find_log_cure(surroundings, &kind.into(), true);
            assert!(
                cure.contains(words) && !cure.contains("run gpumon as root"),
                "{surroundings:?} {kind}: {cure}"
            );
        }
        let user = find_log_cure(
            Surroundings::Machine,
            &ErrorKind::PermissionDenied.into(),
            false,
        );
        assert!(user.contains("run gpumon as root"), "{user}");
    }
}
