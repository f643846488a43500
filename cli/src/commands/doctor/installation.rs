//! Checks of the installed drivers: the NVML library and NVIDIA's kernel driver, which must have
//! matching versions, and the drivers that gpumon reads directly from the kernel.

use std::{collections::BTreeSet, fs, io::ErrorKind, path::Path};

use gpumon_probe::{
    model::{Reading, Severity, Vendor},
    surroundings::{Surroundings, hides_processes},
    units::join_list,
    vendor::{
        DeviceNode, DriverFinding, KERNEL_LOG, SourceError, check_drivers,
        container_device_options, device_nodes, find_logged_driver_errors, version_mismatch_advice,
    },
};
use gpumon_smi::{NEWEST_KNOWN, OLDEST_KNOWN};
use rustix::{fs::Access, process::geteuid};

use super::{
    gpus::{Obstacle, find_obstacle},
    machine::Machine,
    report::{Finding, Verdict},
};
use crate::snapshot::DriverState;

const KERNEL_DRIVER_FILE: &str = "/proc/driver/nvidia/version";

pub(super) fn check_installation(machine: &Machine, driver: &DriverState) -> Vec<Finding> {
    let kernel_driver = find_kernel_driver(machine);
    let answer = match driver {
        DriverState::Refused(error) => {
            return vec![make_open_failure_finding(error, kernel_driver.as_deref())];
        }
        DriverState::Silent => {
            let cure = "try again in a minute, because a driver without persistence mode \
                        initializes its GPUs slowly; if the driver still does not respond, check \
                        `dmesg | grep -i nvrm` and reboot";
            return vec![Finding::new_problem(
                "driver",
                "the driver has not responded within 10 s",
                cure,
            )];
        }
        DriverState::Answers(_) if driver.is_simulated() => {
            return vec![Finding::new_note("driver", "none: the GPUs are simulated")];
        }
        DriverState::Answers(answer) => answer,
    };
    let platform = &answer.inventory.platform;
    let others = platform
        .drivers
        .iter()
        .filter(|own| own.vendor != Vendor::Nvidia);
    let others = others.flat_map(|own| {
        let vendor = own.vendor.name();
        let tested = format!(
            "gpumon was tested with recorded data from {vendor} GPUs, but not yet on real hardware"
        );
        let send = "if a value is wrong, report it and attach an archive created by `gpumon \
         doctor --bundle`";
        [
            Finding::new_ok(
                "driver",
                format!("{vendor} {}", format_version(&own.version)),
            ),
            Finding::new_note("driver", tested).with_cure(send),
        ]
    });
    let Some(nvidia) = platform.find_driver(Vendor::Nvidia) else {
        return others.collect();
    };
    let (of_driver, of_library) = (
        format_version(&nvidia.version),
        format_version(&nvidia.library_version),
    );
    let cuda = nvidia
        .cuda_version
        .value()
        .map(|cuda| format!(", supports CUDA up to {cuda}"))
        .unwrap_or_default();
    let mut findings = vec![Finding::new_ok("driver", format!("{of_driver}{cuda}"))];
    let at = find_loaded_nvml_library(machine)
        .map(|path| format!(" at {path}"))
        .unwrap_or_default();
    findings.push(Finding::new_ok("library", format!("NVML {of_library}{at}")));
    let library_version = nvidia.library_version.value().map(String::as_str);
    findings.extend(check_version_mismatch(
        kernel_driver.as_deref(),
        library_version,
        machine.surroundings(),
    ));
    findings.extend(
        nvidia
            .version
            .value()
            .and_then(|driver| check_driver_branch(driver)),
    );
    findings.extend(others);
    findings
}

/// Returns the version of the loaded kernel driver.
pub(super) fn find_kernel_driver(machine: &Machine) -> Option<String> {
    machine
        .read_text(KERNEL_DRIVER_FILE)
        .as_deref()
        .and_then(parse_kernel_driver_version)
        .map(str::to_owned)
}

/// Reports a driver branch that is outside the range of branches with which gpumon was tested.
fn check_driver_branch(driver: &str) -> Option<Finding> {
    let branch: u32 = driver.split('.').next()?.parse().ok()?;
    if branch > NEWEST_KNOWN {
        let text = format!(
            "driver {driver} is newer than the drivers that this version of gpumon supports: \
             `gpumon smi` prints the output format of driver {NEWEST_KNOWN}"
        );
        return Some(
            Finding::new_note("nvidia-smi", text)
                .with_cure("update gpumon if a newer version is available"),
        );
    }
    (branch < OLDEST_KNOWN).then(|| {
        let text = format!(
            "driver {driver} is older than {OLDEST_KNOWN}, the oldest driver that gpumon was \
             tested with: readings that this driver does not support are missing, and `gpumon \
             smi` prints the output format of driver {OLDEST_KNOWN}"
        );
        Finding::new_note("driver", text).with_cure("update the driver if readings are missing")
    })
}

/// Returns a finding if the NVML library and the kernel driver have different versions, as after an
/// incomplete upgrade.
fn check_version_mismatch(
    kernel_driver: Option<&str>,
    library: Option<&str>,
    surroundings: Surroundings,
) -> Option<Finding> {
    let Some(kernel_driver) = kernel_driver else {
        return Some(Finding::new_note(
            "versions",
            format!("{KERNEL_DRIVER_FILE} is missing, so the library version cannot be checked"),
        ));
    };
    // NVML's version starts with CUDA's major version, followed by the driver's version.
    let library = library?.split_once('.')?.1;
    (library != kernel_driver).then(|| {
        let text = format!(
            "the kernel driver has version {kernel_driver}, but the NVML library has version \
             {library}"
        );
        Finding::new_warning("versions", text, version_mismatch_advice(surroundings))
    })
}

fn make_open_failure_finding(error: &SourceError, kernel_driver: Option<&str>) -> Finding {
    let check = match error {
        SourceError::NoLibrary(_) => "library",
        SourceError::NoDevice(_) => "gpus",
        _ => "driver",
    };
    let runs = kernel_driver
        .map(|version| format!(" (kernel driver {version})"))
        .unwrap_or_default();
    let message = error.to_string();
    // In messages with advice, the advice follows the first semicolon.
    match message.split_once("; ") {
        Some((text, cure)) => Finding::new_problem(check, format!("{text}{runs}"), cure),
        None => Finding::new_problem(
            check,
            format!("{message}{runs}"),
            "see `dmesg | grep -i nvrm`",
        ),
    }
}

/// Returns the version in `NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.159.04  Release
/// Build (...)`.
fn parse_kernel_driver_version(text: &str) -> Option<&str> {
    let is_version =
        |word: &&str| word.contains('.') && word.split('.').all(|part| part.parse::<u32>().is_ok());
    text.lines()
        .next()?
        .split_ascii_whitespace()
        .find(is_version)
}

/// Returns the path of the NVML library that this process has loaded.
fn find_loaded_nvml_library(machine: &Machine) -> Option<String> {
    machine.find_mapped_file(|name| name.contains("nvidia-ml"))
}

fn format_version(reading: &Reading<String>) -> String {
    reading
        .value()
        .map_or_else(|| "of unknown version".to_owned(), Clone::clone)
}

pub(super) fn check_package_conflict(machine: &Machine) -> Option<Finding> {
    let program = std::env::current_exe().ok()?;
    find_conflicting_gpumon_package(machine, &program)
}

/// Finds an unrelated Python package that is also called gpumon, in the environment in which this
/// program is installed.
///
/// Both packages contain `gpumon/__init__.py` and a command `gpumon`. Whichever is installed last
/// overwrites the other's files, and uninstalling either package removes these files. The package
/// of this program is called jupyterlab-gpumon.
fn find_conflicting_gpumon_package(machine: &Machine, program: &Path) -> Option<Finding> {
    let environment = program.parent()?.parent()?.to_str()?;
    let (folder, version) = list_package_dirs(machine, environment)
        .into_iter()
        .find_map(|folder| {
            machine
                .list_directory_entries(&folder)
                .iter()
                .find_map(|name| parse_package_version(name).map(str::to_owned))
                .map(|version| (folder, version))
        })?;
    let text = format!(
        "the Python package gpumon {version} in {folder} belongs to a different project, whose \
         files have the same names as the files of this gpumon"
    );
    let cure = "run `pip uninstall gpumon jupyterlab-gpumon`, then reinstall this gpumon with `pip \
                install jupyterlab_gpumon-*.whl`";
    Some(Finding::new_warning("package", text, cure))
}

/// Returns the directories of an environment that can contain Python packages.
fn list_package_dirs(machine: &Machine, environment: &str) -> Vec<String> {
    // `pip install --target` puts packages and programs into one directory.
    let mut folders = vec![environment.to_owned()];
    for library in ["lib", "lib64"] {
        let pythons = machine.list_directory_entries(&format!("{environment}/{library}"));
        for python in pythons.iter().filter(|name| name.starts_with("python3")) {
            folders.extend(
                ["site-packages", "dist-packages"]
                    .map(|packages| format!("{environment}/{library}/{python}/{packages}")),
            );
        }
    }
    folders
}

/// Returns the version in `gpumon-0.0.11.dist-info` or `gpumon-0.0.11-py3.9.egg-info`.
fn parse_package_version(name: &str) -> Option<&str> {
    let entry = name.strip_prefix("gpumon-")?;
    let version = entry
        .strip_suffix(".dist-info")
        .or_else(|| entry.strip_suffix(".egg-info"))?;
    version.split('-').next()
}

// Checks of the drivers that gpumon reads directly from the kernel: their GPUs, the device files
// that programs use, and their errors in the kernel log.

pub(super) fn check_kernel_drivers(machine: &Machine) -> Vec<Finding> {
    let nodes = device_nodes(machine.roots());
    let mut findings: Vec<_> = check_drivers(machine.roots())
        .into_iter()
        .map(Finding::from)
        .collect();
    findings.extend(check_compute_device_files(machine, &nodes));
    findings.extend(check_process_visibility(
        machine,
        &nodes,
        geteuid().is_root(),
    ));
    // If the kernel log cannot be read, another check reports this, so the error is ignored here.
    let errors = find_logged_driver_errors(&machine.resolve_path(KERNEL_LOG)).unwrap_or_default();
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
fn check_compute_device_files(machine: &Machine, nodes: &[DeviceNode]) -> Option<Finding> {
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

/// Reports that GPU use by other users' processes is not visible. The drivers show this use only in
/// procfs, and this user may not read the files of other users' processes there.
fn check_process_visibility(
    machine: &Machine,
    nodes: &[DeviceNode],
    is_root: bool,
) -> Option<Finding> {
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
            "{root}, or add the user that runs gpumon to the group that the mount option `gid` \
             specifies"
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
    use std::fs;

    use super::super::report::Verdict;

    use super::*;

    const VERSION_FILE_TEXT: &str = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.159.04  \
                        Release Build  (dvs)\nGCC version:  gcc version 12.2.0 (Debian 12.2.0-14)\n";

    #[test]
    fn untested_driver_branch_is_noted() {
        assert_eq!(
            ["580.65.06", "610.57.04", "of its own"].map(check_driver_branch),
            [None, None, None]
        );
        for (driver, words) in [
            (
                "9999.1",
                "newer than the drivers that this version of gpumon supports",
            ),
            (
                "470.256.02",
                "older than 580, the oldest driver that gpumon was tested with",
            ),
        ] {
            let finding = check_driver_branch(driver).unwrap();
            assert_eq!(finding.verdict, Verdict::Note);
            assert!(
                finding.text.contains(driver) && finding.text.contains(words),
                "{}",
                finding.text
            );
        }
    }

    #[test]
    fn version_mismatch_causes_warning() {
        assert_eq!(
            parse_kernel_driver_version(VERSION_FILE_TEXT),
            Some("580.159.04")
        );
        let compare =
            |kernel, library| check_version_mismatch(kernel, library, Surroundings::Docker);
        assert_eq!(
            compare(
                parse_kernel_driver_version(VERSION_FILE_TEXT),
                Some("13.580.159.04")
            ),
            None
        );
        let finding = compare(
            parse_kernel_driver_version(VERSION_FILE_TEXT),
            Some("12.570.10"),
        )
        .unwrap();
        assert!(
            finding
                .cure
                .as_ref()
                .unwrap()
                .contains("restart the container"),
            "{finding:?}"
        );
        assert_eq!(finding.verdict, Verdict::Warning);
        assert!(
            finding.text.contains("580.159.04") && finding.text.contains("570.10"),
            "{}",
            finding.text
        );
        assert_eq!(
            compare(None, Some("12.570.10")).unwrap().verdict,
            Verdict::Note
        );
    }

    #[test]
    fn nvml_library_is_found_in_mapped_files() {
        let maps = "7f00-7f01 r-xp 00000000 08:01 42  /usr/lib/libc.so.6\n7f02-7f03 rw-p 00000000 \
                    00:00 0\n7f04-7f05 r-xp 00000000 08:01 43  /opt/my \
                    libs/libnvidia-ml.so.580.159.04\n";
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(root.path().join("proc/self")).unwrap();
        std::fs::write(root.path().join("proc/self/maps"), maps).unwrap();
        let found = find_loaded_nvml_library(&Machine::with_root(root.path()));
        assert_eq!(
            found.as_deref(),
            Some("/opt/my libs/libnvidia-ml.so.580.159.04")
        );
    }

    /// Returns the finding for an environment that contains the package metadata `entry`.
    fn check_environment_with_package(entry: &str) -> Option<Finding> {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir_all(root.path().join("venv").join(entry)).unwrap();
        find_conflicting_gpumon_package(
            &Machine::with_root(root.path()),
            Path::new("/venv/bin/gpumon"),
        )
    }

    #[test]
    fn unrelated_package_in_same_environment_causes_warning() {
        let finding =
            check_environment_with_package("lib/python3.11/site-packages/gpumon-0.0.11.dist-info")
                .unwrap();
        assert_eq!(finding.verdict, Verdict::Warning);
        assert!(
            finding
                .text
                .contains("gpumon 0.0.11 in /venv/lib/python3.11/site-packages"),
            "{}",
            finding.text
        );
        assert!(
            finding
                .cure
                .unwrap()
                .contains("pip uninstall gpumon jupyterlab-gpumon")
        );
        for entry in [
            "lib64/python3/dist-packages/gpumon-0.0.11-py3.9.egg-info",
            "gpumon-1.dist-info",
        ] {
            assert!(check_environment_with_package(entry).is_some(), "{entry}");
        }
    }

    #[test]
    fn gpumon_package_and_similar_names_are_accepted() {
        for name in [
            "jupyterlab_gpumon-0.2.0.dist-info",
            "gpumon",
            "gpumon_x-1.dist-info",
            "gpumonitor-1.dist-info",
        ] {
            assert_eq!(
                check_environment_with_package(&format!("lib/python3.11/site-packages/{name}")),
                None,
                "{name}"
            );
        }
    }
}

#[cfg(test)]
mod kernel_drivers_tests {
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
            let finding = check_compute_device_files(&machine, &nodes(&machine)).unwrap();
            assert_eq!(finding.verdict, Verdict::Note);
            assert!(
                finding.text.contains("no /dev/kfd, /dev/dri/renderD128"),
                "{finding:?}"
            );
            assert!(finding.cure.unwrap().contains(words), "{mark}");
        }
        let root = tempfile::tempdir().unwrap();
        let machine = make_machine(root.path(), &NODES);
        let finding = check_compute_device_files(&machine, &nodes(&machine)).unwrap();
        assert_eq!(finding.verdict, Verdict::Ok);
        let closed = fs::Permissions::from_mode(0o000);
        fs::set_permissions(root.path().join("dev/kfd"), closed).unwrap();
        // Root may open any file, so the file's mode can be tested only as another user.
        if !geteuid().is_root() {
            let finding = check_compute_device_files(&machine, &nodes(&machine)).unwrap();
            assert!(
                finding.text.contains("has no permission to open /dev/kfd"),
                "{finding:?}"
            );
            assert!(finding.cure.unwrap().contains("render,video"));
        }
        assert_eq!(check_compute_device_files(&machine, &[]), None);
    }

    #[test]
    fn access_fix_depends_on_container_and_vendor() {
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
        assert_eq!(check_process_visibility(&machine, &nodes, false), None);
        let machine = make_machine(
            root.path(),
            &[("proc/self/mountinfo", &mounts(",hidepid=2"))],
        );
        let finding = check_process_visibility(&machine, &nodes, false).unwrap();
        assert!(finding.text.contains("hidepid") && finding.verdict == Verdict::Note);
        assert!(finding.text.contains("on AMD GPUs are"), "{finding:?}");
        assert_eq!(check_process_visibility(&machine, &nodes, true), None);
        assert_eq!(check_process_visibility(&machine, &[], false), None);
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
