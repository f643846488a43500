//! Checks of the files in `/dev` through which programs reach the driver.

use std::{fs, os::unix::fs::MetadataExt};

use gpumon_probe::surroundings::Surroundings;
use rustix::{
    fs::{Access, access},
    io::Errno,
};

use super::{finding::Finding, machine::Machine};

/// The device file that CUDA programs need in addition to the GPUs' files. gpumon itself does not
/// need it.
const UVM_FILE: &str = "nvidia-uvm";

/// The directory of the files that grant access to MIG devices and to their monitoring.
const CAPABILITIES_DIR: &str = "/dev/nvidia-caps";

pub(super) fn check_device_files(machine: &Machine) -> Vec<Finding> {
    if machine.is_wsl() {
        return vec![check_wsl_device(machine)];
    }
    let files: Vec<_> = machine
        .list_names("/dev")
        .into_iter()
        .filter(|name| is_nvidia_device_file(name))
        .collect();
    if files.is_empty() {
        let text = "/dev contains no NVIDIA device files";
        return vec![Finding::new_note("device files", text).with_cure(
            match machine.surroundings() {
                Surroundings::Machine => {
                    "run `nvidia-modprobe` to create the device files, which the driver needs"
                }
                surroundings => surroundings.driver_cure(),
            },
        )];
    }
    let closed = find_inaccessible_device_files(machine);
    let mut findings = Vec::new();
    if closed.is_empty() {
        findings.push(Finding::new_ok(
            "device files",
            format!("this user can open {}", files.join(", ")),
        ));
    }
    for file in closed {
        let text = match file.obstacle {
            Obstacle::Mode => format!(
                "this user has no permission to open {}{}",
                file.path,
                describe_file_mode(machine, &file.path)
            ),
            Obstacle::Cgroup => format!(
                "the device cgroup of this process does not allow access to {}",
                file.path
            ),
        };
        // A Slurm job is not meant to open other jobs' GPUs, so their files are only a note, not a
        // problem.
        let is_usual = file.obstacle == Obstacle::Cgroup && machine.is_slurm_job();
        let finding = if is_usual {
            Finding::new_note
        } else {
            |check, text| Finding::new_problem(check, text, "")
        };
        findings.push(
            finding("device files", text).with_cure(describe_access_fix(machine, file.obstacle)),
        );
    }
    if !files.iter().any(|name| name == UVM_FILE) {
        let cure = match machine.surroundings() {
            Surroundings::Machine => {
                "run `nvidia-modprobe -u`, or load the kernel module nvidia-uvm"
            }
            surroundings => surroundings.driver_cure(),
        };
        findings.push(
            Finding::new_note(
                "device files",
                format!("there is no /dev/{UVM_FILE}, which CUDA programs need"),
            )
            .with_cure(cure),
        );
    }
    findings
}

/// Returns `true` for `nvidia0`, `nvidiactl` and `nvidia-uvm`, but not for the directory
/// `nvidia-caps` or for files of other services.
fn is_nvidia_device_file(name: &str) -> bool {
    let rest = name.strip_prefix("nvidia");
    name == UVM_FILE
        || rest.is_some_and(|rest| {
            rest == "ctl" || (!rest.is_empty() && rest.bytes().all(|b| b.is_ascii_digit()))
        })
}

/// The reason why this process may not open a device file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Obstacle {
    /// The file's owner, group or mode denies access.
    Mode,
    /// The device cgroup of a container, job or service denies access, even to root.
    Cgroup,
}

pub(super) struct InaccessibleFile {
    pub(super) path: String,
    pub(super) obstacle: Obstacle,
}

/// Returns the device files of the driver and its GPUs that this process may not open.
pub(super) fn find_inaccessible_device_files(machine: &Machine) -> Vec<InaccessibleFile> {
    let names = machine
        .list_names("/dev")
        .into_iter()
        .filter(|name| is_nvidia_device_file(name));
    find_inaccessible_files(
        machine,
        names.map(|name| format!("/dev/{name}")),
        Access::READ_OK | Access::WRITE_OK,
    )
}

/// Returns the files of `/dev/nvidia-caps` that this process may not read. Each file grants access
/// to a MIG device, or the right to monitor or configure all of them.
pub(super) fn find_inaccessible_capabilities(machine: &Machine) -> Vec<InaccessibleFile> {
    let names = machine.list_names(CAPABILITIES_DIR).into_iter();
    find_inaccessible_files(
        machine,
        names.map(|name| format!("{CAPABILITIES_DIR}/{name}")),
        Access::READ_OK,
    )
}

fn find_inaccessible_files(
    machine: &Machine,
    paths: impl Iterator<Item = String>,
    access: Access,
) -> Vec<InaccessibleFile> {
    paths
        .filter_map(|path| {
            find_obstacle(machine, &path, access)
                .map(|obstacle| InaccessibleFile { path, obstacle })
        })
        .collect()
}

/// Returns the obstacle to opening a device file. The file is not opened, because that would wake
/// its GPU.
pub(super) fn find_obstacle(machine: &Machine, path: &str, wanted: Access) -> Option<Obstacle> {
    obstacle_from_error(access(machine.resolve_path(path), wanted).err()?)
}

/// Returns the obstacle that an error of the kernel indicates. The kernel returns different errors
/// if the device cgroup and if the mode of the file deny access.
fn obstacle_from_error(error: Errno) -> Option<Obstacle> {
    match error {
        Errno::PERM => Some(Obstacle::Cgroup),
        // The file was removed in the meantime.
        Errno::NOENT => None,
        _ => Some(Obstacle::Mode),
    }
}

/// Returns instructions for getting access to a GPU.
pub(super) fn describe_access_fix(machine: &Machine, obstacle: Obstacle) -> String {
    let surroundings = machine.surroundings();
    match obstacle {
        Obstacle::Mode => "add the user to the file's group, or change the file's mode".to_owned(),
        Obstacle::Cgroup if machine.is_slurm_job() => {
            "request the GPU for the job (`--gpus`): with ConstrainDevices, Slurm lets a job open \
             only its own GPUs"
                .to_owned()
        }
        Obstacle::Cgroup if surroundings.container_name().is_some() => {
            surroundings.driver_cure().to_owned()
        }
        Obstacle::Cgroup => "allow the file in the systemd unit of this process, for example with \
                             `DeviceAllow=/dev/nvidia0 rw` and `DeviceAllow=/dev/nvidiactl rw`"
            .to_owned(),
    }
}

fn describe_file_mode(machine: &Machine, path: &str) -> String {
    let found = fs::metadata(machine.resolve_path(path));
    found.map_or_else(
        |_| String::new(),
        |file| {
            format!(
                " (mode {:o}, user {}, group {})",
                file.mode() & 0o777,
                file.uid(),
                file.gid()
            )
        },
    )
}

fn check_wsl_device(machine: &Machine) -> Finding {
    if machine.has_path("/dev/dxg") {
        return Finding::new_ok(
            "device files",
            "/dev/dxg, the device of the Windows driver, is present",
        );
    }
    let cure = "update the NVIDIA driver for Windows, and WSL (`wsl --update`)";
    Finding::new_problem(
        "device files",
        "there is no /dev/dxg, the device of the Windows driver",
        cure,
    )
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::{super::finding::Verdict, *};

    #[test]
    fn device_access_fix_depends_on_surroundings() {
        for (file, content, words) in [
            ("etc/none", "", "DeviceAllow"),
            (".dockerenv", "", "--gpus all"),
            ("run/.containerenv", "", "nvidia.com/gpu=all"),
            (".singularity.d/env", "", "--nv"),
            (
                "proc/self/environ",
                "HOME=/\0SLURM_JOB_ID=7\0",
                "ConstrainDevices",
            ),
            (
                "proc/self/cgroup",
                "0::/system.slice/slurmstepd.scope/job_7/step_0\n",
                "ConstrainDevices",
            ),
        ] {
            let root = tempfile::tempdir().unwrap();
            let path = root.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
            let cure = describe_access_fix(&Machine::with_root(root.path()), Obstacle::Cgroup);
            assert!(cure.contains(words), "{file}: {cure}");
        }
    }

    fn list_verdicts(root: &std::path::Path) -> Vec<Verdict> {
        check_device_files(&Machine::with_root(root))
            .into_iter()
            .map(|finding| finding.verdict)
            .collect()
    }

    #[test]
    fn missing_device_files_are_noted() {
        let root = tempfile::tempdir().unwrap();
        assert_eq!(list_verdicts(root.path()), [Verdict::Note]);
        let dev = root.path().join("dev");
        fs::create_dir(&dev).unwrap();
        for name in [
            "nvidia0",
            "nvidia12",
            "nvidiactl",
            "nvidia-caps",
            "nvidia-fs0",
        ] {
            fs::write(dev.join(name), "").unwrap();
        }
        let findings = check_device_files(&Machine::with_root(root.path()));
        assert_eq!(
            findings[0].text,
            "this user can open nvidia0, nvidia12, nvidiactl"
        );
        assert_eq!(
            list_verdicts(root.path()),
            [Verdict::Ok, Verdict::Note],
            "nvidia-uvm is missing"
        );
        fs::write(dev.join(UVM_FILE), "").unwrap();
        assert_eq!(list_verdicts(root.path()), [Verdict::Ok]);
        // A test cannot create a file that a device cgroup blocks, so only the mapping of the
        // errors is checked.
        assert_eq!(
            [Errno::PERM, Errno::ACCESS].map(obstacle_from_error),
            [Obstacle::Cgroup, Obstacle::Mode].map(Some)
        );
        // Root may open any file, so the file's mode can be tested only as another user.
        if !rustix::process::geteuid().is_root() {
            fs::set_permissions(dev.join("nvidia0"), fs::Permissions::from_mode(0o000)).unwrap();
            assert_eq!(list_verdicts(root.path()), [Verdict::Problem]);
        }
    }
}
