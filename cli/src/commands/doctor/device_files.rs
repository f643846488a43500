//! The files in `/dev` through which the driver is reached.

use std::{fs, os::unix::fs::MetadataExt};

use rustix::fs::{Access, access};

use super::{finding::Finding, machine::Machine};

/// What CUDA programs need beside the GPUs' own files; gpumon does not.
const UVM: &str = "nvidia-uvm";

pub(super) fn check(machine: &Machine) -> Vec<Finding> {
    if machine.is_wsl() {
        return vec![windows(machine)];
    }
    let files: Vec<_> = machine.names("/dev").into_iter().filter(|name| is_nvidia(name)).collect();
    if files.is_empty() {
        let text = "there is no /dev/nvidia*";
        return vec![
            Finding::note("device files", text)
                .with_cure("the driver needs them: run nvidia-modprobe, or start the container with GPUs"),
        ];
    }
    let shut: Vec<_> = files.iter().filter(|name| !may_open(machine, name)).collect();
    let mut findings = Vec::new();
    if shut.is_empty() {
        findings.push(Finding::ok("device files", format!("this user may open {}", files.join(", "))));
    }
    for name in shut {
        let text = format!("this user may not open /dev/{name}{}", owner(machine, name));
        findings.push(Finding::problem("device files", text, "add the user to the file's group, or change its mode"));
    }
    if !files.iter().any(|name| name == UVM) {
        let cure = "run `nvidia-modprobe -u`, or load the kernel module nvidia-uvm";
        findings.push(
            Finding::note("device files", format!("there is no /dev/{UVM}, which CUDA programs need")).with_cure(cure),
        );
    }
    findings
}

/// `nvidia0`, `nvidiactl` and `nvidia-uvm`; not `nvidia-caps`, which is a folder, nor files of other services.
fn is_nvidia(name: &str) -> bool {
    let rest = name.strip_prefix("nvidia");
    name == UVM
        || rest.is_some_and(|rest| rest == "ctl" || (!rest.is_empty() && rest.bytes().all(|b| b.is_ascii_digit())))
}

/// Asked of the system rather than tried: opening wakes the GPU.
fn may_open(machine: &Machine, name: &str) -> bool {
    access(machine.path(&format!("/dev/{name}")), Access::READ_OK | Access::WRITE_OK).is_ok()
}

fn owner(machine: &Machine, name: &str) -> String {
    let found = fs::metadata(machine.path(&format!("/dev/{name}")));
    found.map_or_else(
        |_| String::new(),
        |file| format!(" (mode {:o}, user {}, group {})", file.mode() & 0o777, file.uid(), file.gid()),
    )
}

fn windows(machine: &Machine) -> Finding {
    if machine.exists("/dev/dxg") {
        return Finding::ok("device files", "/dev/dxg leads to Windows' own driver");
    }
    let cure = "update the NVIDIA driver of Windows, and WSL (`wsl --update`)";
    Finding::problem("device files", "there is no /dev/dxg, the device of the Windows driver", cure)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::{super::finding::Verdict, *};

    fn verdicts(root: &std::path::Path) -> Vec<Verdict> {
        check(&Machine::below(root)).into_iter().map(|finding| finding.verdict).collect()
    }

    #[test]
    fn files_that_may_not_be_opened_are_a_problem_and_missing_ones_worth_a_note() {
        let root = tempfile::tempdir().unwrap();
        assert_eq!(verdicts(root.path()), [Verdict::Note]);
        let dev = root.path().join("dev");
        fs::create_dir(&dev).unwrap();
        for name in ["nvidia0", "nvidia12", "nvidiactl", "nvidia-caps", "nvidia-fs0"] {
            fs::write(dev.join(name), "").unwrap();
        }
        let findings = check(&Machine::below(root.path()));
        assert_eq!(findings[0].text, "this user may open nvidia0, nvidia12, nvidiactl");
        assert_eq!(verdicts(root.path()), [Verdict::Ok, Verdict::Note], "nvidia-uvm is missing");
        fs::write(dev.join(UVM), "").unwrap();
        assert_eq!(verdicts(root.path()), [Verdict::Ok]);
        // Root may open whatever there is.
        if !rustix::process::geteuid().is_root() {
            fs::set_permissions(dev.join("nvidia0"), fs::Permissions::from_mode(0o000)).unwrap();
            assert_eq!(verdicts(root.path()), [Verdict::Problem]);
        }
    }
}
