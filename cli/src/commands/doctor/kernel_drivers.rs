//! Checks of the drivers that gpumon reads directly from the kernel: their GPUs, the device files
//! that programs use, and their errors in the kernel log.

use std::{collections::BTreeSet, fs, io::ErrorKind, path::Path};

use gpumon_probe::{
    model::{Severity, Vendor},
    surroundings::hides_processes,
    units::join_list,
    vendor::{
        DeviceNode, DriverFinding, KERNEL_LOG, check_driver_log, check_drivers,
        container_device_options, device_nodes,
    },
};
use rustix::{fs::Access, process::geteuid};

use super::{
    device_files::{Obstacle, find_obstacle},
    finding::{Finding, Verdict},
    machine::Machine,
};

pub(super) fn check_kernel_drivers(machine: &Machine) -> Vec<Finding> {
    let nodes = device_nodes(machine.roots());
    let mut findings: Vec<_> = check_drivers(machine.roots())
        .into_iter()
        .map(Finding::from)
        .collect();
    findings.extend(check_nodes(machine, &nodes));
    findings.extend(check_processes(machine, &nodes, geteuid().is_root()));
    // Another check reports a log that cannot be read.
    let errors = check_driver_log(&machine.resolve_path(KERNEL_LOG)).unwrap_or_default();
    findings.extend(errors.into_iter().map(Finding::from));
    findings
}

impl From<DriverFinding> for Finding {
    fn from(finding: DriverFinding) -> Self {
        let verdict = Verdict::from(finding.severity);
        Self {
            cure: finding.cure,
            ..Self::new(finding.check, verdict, finding.text)
        }
    }
}

impl From<Severity> for Verdict {
    fn from(severity: Severity) -> Self {
        match severity {
            Severity::Notice => Self::Note,
            Severity::Warning => Self::Warning,
            Severity::Critical => Self::Problem,
        }
    }
}

/// Checks the device files that compute programs use. gpumon itself does not open them.
fn check_nodes(machine: &Machine, nodes: &[DeviceNode]) -> Option<Finding> {
    let access = Access::READ_OK | Access::WRITE_OK;
    let is_missing = |node: &&DeviceNode| !machine.has_path(&node.path);
    let obstacles = nodes
        .iter()
        .filter(|node| !is_missing(node))
        .filter_map(|node| Some((node, find_obstacle(machine, &node.path, access)?)));
    let closed: Vec<_> = obstacles.collect();
    let list = |nodes: Vec<&DeviceNode>| {
        let paths: Vec<_> = nodes.iter().map(|node| node.path.as_str()).collect();
        paths.join(", ")
    };
    let note = |text: String, cure: String| {
        let text = format!("{text}; compute programs need these device files, gpumon does not");
        Some(Finding::new_note("device files", text).with_cure(cure))
    };
    if let Some((node, obstacle)) = closed.first() {
        let paths = list(closed.iter().map(|(node, _)| *node).collect());
        let text = format!("this user has no permission to open {paths}");
        return note(text, describe_access_fix(machine, *obstacle, node.vendor));
    }
    let missing: Vec<_> = nodes.iter().filter(is_missing).collect();
    if let Some(node) = missing.first() {
        let text = format!("there is no {}", list(missing.clone()));
        let cure = match machine.surroundings().container_name() {
            Some(_) => describe_access_fix(machine, Obstacle::Cgroup, node.vendor),
            None => "see `dmesg`: the driver has not created the device file".to_owned(),
        };
        return note(text, cure);
    }
    let all = list(nodes.iter().collect());
    (!nodes.is_empty())
        .then(|| Finding::new_ok("device files", format!("this user can open {all}")))
}

/// Returns advice on how programs get access to a vendor's GPUs.
fn describe_access_fix(machine: &Machine, obstacle: Obstacle, vendor: Vendor) -> String {
    let devices = container_device_options(vendor);
    let is_container = machine.surroundings().container_name().is_some();
    match obstacle {
        _ if is_container => format!(
            "start the container with `{devices}`, and with `--group-add` for the group of each \
             file"
        ),
        Obstacle::Mode => {
            "add the user to the groups of these files, usually with `sudo usermod -aG \
             render,video USER`, and log in again"
                .to_owned()
        }
        Obstacle::Cgroup if machine.is_slurm_job() => {
            "request the GPU for the job (`--gpus`)".to_owned()
        }
        Obstacle::Cgroup => {
            "allow these devices in the systemd unit of this process, for example with \
             `DeviceAllow=char-drm rw` and `DeviceAllow=char-kfd rw`"
                .to_owned()
        }
    }
}

/// Reports that GPU use by other users' processes is not visible, because the drivers show it only
/// in procfs.
fn check_processes(machine: &Machine, nodes: &[DeviceNode], is_root: bool) -> Option<Finding> {
    if is_root || nodes.is_empty() {
        return None;
    }
    let vendors: BTreeSet<_> = nodes.iter().map(|node| node.vendor).collect();
    let names: Vec<_> = vendors.iter().map(|own| own.name().to_owned()).collect();
    let names = join_list(&names);
    let root = "run gpumon as root, or give it CAP_SYS_PTRACE";
    let mounts = machine.read_text("/proc/self/mountinfo");
    if mounts.is_some_and(|text| hides_processes(&text)) {
        let text = format!(
            "/proc is mounted with hidepid: processes of other users on {names} GPUs are not listed"
        );
        let cure = format!(
            "{root}, or add the user of gpumon to the group that the mount option `gid` specifies"
        );
        return Some(Finding::new_note("processes", text).with_cure(cure));
    }
    let hidden = count_unreadable_processes(&machine.roots().proc);
    (hidden > 0).then(|| {
        let except = if vendors.contains(&Vendor::Amd) {
            ", except for the memory of ROCm programs"
        } else {
            ""
        };
        let text = format!(
            "{hidden} processes belong to other users: their use of {names} GPUs is unknown{except}"
        );
        Finding::new_note("processes", text).with_cure(root)
    })
}

/// Returns the number of processes whose file descriptors this user may not read.
fn count_unreadable_processes(proc_root: &Path) -> usize {
    let entries = fs::read_dir(proc_root).into_iter().flatten().flatten();
    let is_process = |name: &str| name.bytes().all(|letter| letter.is_ascii_digit());
    let processes = entries.filter(|entry| entry.file_name().to_str().is_some_and(is_process));
    let is_unreadable = |path: &Path| {
        let error = fs::read_dir(path.join("fd")).err();
        error.is_some_and(|error| error.kind() == ErrorKind::PermissionDenied)
    };
    processes
        .filter(|entry| is_unreadable(&entry.path()))
        .count()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    const UEVENT_TEXT: &str = "DRIVER=amdgpu\nPCI_ID=1002:744C\nPCI_SLOT_NAME=0000:03:00.0\n";

    /// Returns a machine with one AMD GPU that is awake.
    fn make_machine(root: &Path, files: &[(&str, &str)]) -> Machine {
        let device = "sys/class/drm/card0/device";
        let card = [
            (&*format!("{device}/uevent"), UEVENT_TEXT),
            (&format!("{device}/hwmon/hwmon1/name"), "amdgpu\n"),
            (&format!("{device}/drm/renderD128/dev"), "226:128\n"),
            ("sys/class/kfd/kfd/topology/nodes/0/gpu_id", "0\n"),
        ];
        for (name, content) in card.iter().chain(files) {
            let file = root.join(name);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, content).unwrap();
        }
        Machine::with_root(root)
    }

    const NODES: [(&str, &str); 2] = [("dev/kfd", ""), ("dev/dri/renderD128", "")];

    #[test]
    fn missing_device_files_are_noted_with_cure() {
        let nodes = |machine: &Machine| device_nodes(machine.roots());
        for (mark, words) in [("etc/none", "dmesg"), (".dockerenv", "--device /dev/kfd")] {
            let root = tempfile::tempdir().unwrap();
            let machine = make_machine(root.path(), &[(mark, "")]);
            let finding = check_nodes(&machine, &nodes(&machine)).unwrap();
            assert_eq!(finding.verdict, Verdict::Note);
            assert!(
                finding.text.contains("no /dev/kfd, /dev/dri/renderD128"),
                "{finding:?}"
            );
            assert!(finding.cure.unwrap().contains(words), "{mark}");
        }
        let root = tempfile::tempdir().unwrap();
        let machine = make_machine(root.path(), &NODES);
        let finding = check_nodes(&machine, &nodes(&machine)).unwrap();
        assert_eq!(finding.verdict, Verdict::Ok);
        let closed = fs::Permissions::from_mode(0o000);
        fs::set_permissions(root.path().join("dev/kfd"), closed).unwrap();
        // Root may open any file, so the file's mode can be tested only as another user.
        if !geteuid().is_root() {
            let finding = check_nodes(&machine, &nodes(&machine)).unwrap();
            assert!(
                finding.text.contains("has no permission to open /dev/kfd"),
                "{finding:?}"
            );
            assert!(finding.cure.unwrap().contains("render,video"));
        }
        assert_eq!(check_nodes(&machine, &[]), None);
    }

    #[test]
    fn access_fix_depends_on_surroundings_and_vendor() {
        let cure = |mark: &str, obstacle, vendor| {
            let root = tempfile::tempdir().unwrap();
            describe_access_fix(&make_machine(root.path(), &[(mark, "")]), obstacle, vendor)
        };
        let container = cure(".dockerenv", Obstacle::Mode, Vendor::Intel);
        assert!(container.contains("`--device /dev/dri`"), "{container}");
        let unit = cure("etc/none", Obstacle::Cgroup, Vendor::Amd);
        assert!(unit.contains("DeviceAllow=char-kfd"), "{unit}");
    }

    #[test]
    fn invisible_processes_are_noted() {
        let root = tempfile::tempdir().unwrap();
        let mounts = |options: &str| format!("22 27 0:21 / /proc rw - proc proc rw{options}\n");
        let machine = make_machine(root.path(), &[("proc/self/mountinfo", &mounts(""))]);
        let nodes = device_nodes(machine.roots());
        assert_eq!(check_processes(&machine, &nodes, false), None);
        let machine = make_machine(
            root.path(),
            &[("proc/self/mountinfo", &mounts(",hidepid=2"))],
        );
        let finding = check_processes(&machine, &nodes, false).unwrap();
        assert!(finding.text.contains("hidepid") && finding.verdict == Verdict::Note);
        assert!(finding.text.contains("on AMD GPUs are"), "{finding:?}");
        assert_eq!(check_processes(&machine, &nodes, true), None);
        assert_eq!(check_processes(&machine, &[], false), None);
    }

    #[test]
    fn errors_in_log_are_counted_by_kind() {
        let root = tempfile::tempdir().unwrap();
        let line = "amdgpu 0000:03:00.0: amdgpu:";
        let log = format!(
            "4,1,10,-;{line} GPU reset begin!\n4,2,20,-;{line} GPU reset begin!\n\
             4,3,30,-;{line} GPU over temperature range(SW CTF) detected!\n\
             4,4,40,-;{line} 3 correctable hardware errors detected in umc block\n"
        );
        let files = [NODES[0], NODES[1], ("dev/kmsg", log.as_str())];
        let findings = check_kernel_drivers(&make_machine(root.path(), &files));
        let of_log: Vec<_> = findings
            .iter()
            .filter(|own| own.check == "kernel log")
            .collect();
        let texts: Vec<_> = of_log.iter().map(|own| own.text.as_str()).collect();
        assert_eq!(texts.len(), 2, "{texts:?}");
        assert!(
            of_log
                .iter()
                .all(|own| own.verdict == Verdict::Warning && own.cure.is_some())
        );
        assert!(
            texts
                .iter()
                .any(|text| text.contains("GPU reset (2 times in the log)")),
            "{texts:?}"
        );
        assert!(
            texts
                .iter()
                .any(|text| text.contains("over temperature (once in the log)")),
            "{texts:?}"
        );
    }
}
