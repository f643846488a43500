//! Checks of each GPU's health, settings and conditions, and of the files in `/dev` through which
//! programs reach the driver.

use std::{fs, os::unix::fs::MetadataExt};

use gpumon_probe::{
    model::{Absence, ConditionKind, Gpu, GpuDetails, GpuSample, Health, RecoveryAction, Vendor},
    surroundings::Surroundings,
    vendor::{Explanation, explain_absence, log_advice, reset_advice},
};
use rustix::{
    fs::{Access, access},
    io::Errno,
};

use super::{
    machine::Machine,
    report::{Finding, Verdict},
};
use crate::snapshot::DriverAnswer;

const RESET_ADVICE: &str = "when nothing runs on the GPU, run `gpumon pause`, then `nvidia-smi \
                            --gpu-reset`";

pub(super) fn check_gpus(machine: &Machine, answer: &DriverAnswer) -> Vec<Finding> {
    let mut findings = Vec::new();
    for gpu in &answer.inventory.gpus {
        let sample = answer.gpus().find(|sample| sample.index == gpu.index);
        findings.push(check_health(machine, gpu, sample));
        let Some(sample) = sample else { continue };
        findings.extend(list_condition_findings(gpu.vendor, sample));
        if let (Health::Ok, Some(details)) = (&sample.health, answer.details.get(&gpu.index)) {
            findings.extend(check_persistence(machine, details));
            findings.extend(check_mig(machine, gpu, sample, details));
            findings.extend(check_ecc(details));
        }
    }
    findings
}

pub(super) fn format_gpu_name(index: u32) -> String {
    format!("gpu {index}")
}

fn check_health(machine: &Machine, gpu: &Gpu, sample: Option<&GpuSample>) -> Finding {
    let check = format_gpu_name(gpu.index);
    let reset = reset_advice(gpu.vendor, machine.surroundings());
    let model = gpu
        .name
        .value()
        .map_or("a GPU of unknown name", String::as_str);
    let is_nvidia = gpu.vendor == Vendor::Nvidia;
    let is_silent = |sample: &GpuSample| {
        let (used, memory) = (&sample.utilization.gpu_percent, &sample.memory.total_bytes);
        [used.absence(), memory.absence()] == [Some(&Absence::NoAnswer); 2]
    };
    match sample.filter(|sample| sample.health != Health::Ok || !is_silent(sample)) {
        None => {
            let text = "the driver has not responded within a few seconds";
            Finding::new_problem(check, text, format!("{}; {reset}", log_advice(gpu.vendor)))
        }
        Some(sample) => match &sample.health {
            Health::Ok => Finding::new_ok(check, model),
            Health::Asleep { .. } => Finding::new_note(
                check,
                format!("{model} is suspended by the system to save power; gpumon did not wake it"),
            ),
            Health::Hung { .. } => {
                let text = format!("{model}: a driver call does not return");
                Finding::new_problem(check, text, reset)
            }
            Health::Lost { .. } if is_nvidia => {
                make_gpu_failure_finding(machine, check, model, &Absence::GpuLost)
            }
            Health::Failed { reason, .. } if is_nvidia => {
                make_gpu_failure_finding(machine, check, model, reason)
            }
            Health::Lost { .. } => {
                let text = format!("{model} is no longer present");
                Finding::new_problem(check, text, log_advice(gpu.vendor))
            }
            Health::Failed {
                meaning, advice, ..
            } => Finding::new_problem(check, format!("{model} cannot be read: {meaning}"), advice),
        },
    }
}

/// Returns the finding for a GPU that the driver cannot open or read, with advice on how to fix the
/// cause.
fn make_gpu_failure_finding(
    machine: &Machine,
    check: String,
    model: &str,
    reason: &Absence,
) -> Finding {
    let Some(Explanation { meaning, cure }) = explain_absence(reason, machine.surroundings())
    else {
        let text = format!("{model} cannot be opened: {reason}");
        return Finding::new_problem(check, text, log_advice(Vendor::Nvidia));
    };
    let text = match reason {
        Absence::GpuLost => format!("{model} has fallen off the bus"),
        Absence::DriverError { code } => {
            format!("{model} cannot be opened: driver error {code}, {meaning}")
        }
        _ => format!("{model} cannot be opened: {meaning}"),
    };
    let closed = find_inaccessible_device_files(machine);
    let cure = match closed.first().filter(|_| *reason == Absence::NoPermission) {
        Some(file) => describe_access_fix(machine, file.obstacle),
        None => cure.to_owned(),
    };
    Finding::new_problem(check, text, cure)
}

fn list_condition_findings(vendor: Vendor, sample: &GpuSample) -> impl Iterator<Item = Finding> {
    sample.conditions.iter().map(move |condition| {
        let verdict = Verdict::from(condition.severity);
        let finding = Finding::new(format_gpu_name(sample.index), verdict, &condition.text);
        match condition.kind {
            ConditionKind::EccUncorrected { .. }
            | ConditionKind::PageRetirementPending
            | ConditionKind::RowRemap { failed: false, .. }
            | ConditionKind::RecoveryNeeded {
                action: RecoveryAction::GpuReset | RecoveryAction::DrainAndReset,
            } if vendor == Vendor::Nvidia => finding.with_cure(RESET_ADVICE),
            _ => finding,
        }
    })
}

/// Reports the ECC mode. Also reports ECC errors from before the driver was loaded, because no
/// condition covers these errors.
fn check_ecc(details: &GpuDetails) -> Vec<Finding> {
    let check = || format_gpu_name(details.index);
    let mut findings = Vec::new();
    if let Some(ecc) = details.modes.ecc.value() {
        if !ecc.current {
            findings.push(Finding::new_note(
                check(),
                "ECC is off: memory errors go unnoticed",
            ));
        }
        if ecc.current != ecc.pending {
            let text = "ECC mode change pending until the GPU is reset";
            findings.push(Finding::new_warning(check(), text, RESET_ADVICE));
        }
    }
    let [now, ever] = [&details.ecc.volatile, &details.ecc.aggregate]
        .map(|errors| errors.uncorrected_total.value().copied().unwrap_or(0));
    if now == 0 && ever > 0 {
        let text = format!(
            "{ever} uncorrectable memory errors over the lifetime of the GPU, none since the \
             driver was loaded"
        );
        findings.push(Finding::new_note(check(), text));
    }
    findings
}

fn check_persistence(machine: &Machine, details: &GpuDetails) -> Option<Finding> {
    (details.modes.persistence.value() == Some(&false)).then(|| {
        let text = "persistence mode is off: the driver releases the GPU when its last client \
         exits, and takes several seconds to initialize it for the next client";
        let cure = match machine.surroundings().container_name() {
            Some(_) => "enable the service nvidia-persistenced on the host",
            None => "enable the service nvidia-persistenced",
        };
        Finding::new_note(format_gpu_name(details.index), text).with_cure(cure)
    })
}

fn check_mig(
    machine: &Machine,
    gpu: &Gpu,
    sample: &GpuSample,
    details: &GpuDetails,
) -> Option<Finding> {
    let mode = details.modes.mig.value()?;
    let warning =
        |text: &str, cure: &str| Some(Finding::new_warning(format_gpu_name(gpu.index), text, cure));
    match sample.mig_devices.absence().filter(|_| mode.current) {
        Some(Absence::NoPermission) => {
            let text = "MIG is enabled, but this user cannot access any MIG device";
            return warning(text, &describe_mig_access_fix(machine));
        }
        Some(reason) => {
            let cure = explain_absence(reason, machine.surroundings());
            let cure = cure.map_or(log_advice(Vendor::Nvidia), |explanation| explanation.cure);
            let text = format!("MIG is enabled, but the MIG devices cannot be listed: {reason}");
            return warning(&text, cure);
        }
        None => {}
    }
    match gpu.mig_devices.len() {
        _ if mode.current != mode.pending => {
            let now = if mode.pending { "on" } else { "off" };
            let text = format!("MIG mode change ({now}) pending until the GPU is reset");
            warning(&text, RESET_ADVICE)
        }
        _ if !mode.current => None,
        0 => warning(
            "MIG is enabled without instances, so nothing can run on the GPU",
            "create instances with `nvidia-smi mig -cgi ... -C`, or disable MIG",
        ),
        count => {
            let text = format!(
                "MIG is enabled with {count} devices; the driver reports no utilization for the \
                 GPU as a whole"
            );
            Some(Finding::new_note(format_gpu_name(gpu.index), text))
        }
    }
}

/// Returns advice on how to get access to MIG devices.
fn describe_mig_access_fix(machine: &Machine) -> String {
    if machine.is_slurm_job() {
        return "request a MIG device for the job (`--gres`): with ConstrainDevices, Slurm lets \
         a job open only its own devices"
            .to_owned();
    }
    if machine.surroundings().container_name().is_some() {
        return "start the container with the MIG device (NVIDIA_VISIBLE_DEVICES=MIG-...); to \
                monitor all devices, set NVIDIA_VISIBLE_DEVICES=all and \
                NVIDIA_MIG_MONITOR_DEVICES=all, and add CAP_SYS_ADMIN"
            .to_owned();
    }
    let closed = find_inaccessible_files(machine, CAPABILITIES_DIR, Access::READ_OK, |_| true);
    let files: Vec<_> = closed.into_iter().map(|file| file.path).collect();
    let which = match &files[..] {
        [] => String::new(),
        files => format!(" ({})", files.join(", ")),
    };
    format!(
        "give this user read access to the MIG device files in /dev/nvidia-caps{which}; \
         DeviceFileMinor in /proc/driver/nvidia/capabilities/gpu*/mig/gi*/access identifies the \
         file of each device"
    )
}

// Checks of the device files.

/// The device file that CUDA programs need in addition to the GPUs' files. gpumon itself does not
/// need it.
const UVM_FILE: &str = "nvidia-uvm";

/// The directory of the files that grant access to MIG devices. Each file grants access to one MIG
/// device, or the right to monitor or configure all MIG devices.
const CAPABILITIES_DIR: &str = "/dev/nvidia-caps";

pub(super) fn check_device_files(machine: &Machine) -> Vec<Finding> {
    if machine.is_wsl() {
        return vec![check_wsl_device(machine)];
    }
    let make_note = |text: String, cure: &'static str| {
        let cure = match machine.surroundings() {
            Surroundings::Machine => cure,
            surroundings => surroundings.missing_driver_cure(),
        };
        Finding::new_note("device files", text).with_cure(cure)
    };
    let mut files = machine.list_directory_entries("/dev");
    files.retain(|name| is_nvidia_device_file(name));
    if files.is_empty() {
        return vec![make_note(
            "/dev contains no NVIDIA device files".to_owned(),
            "run `nvidia-modprobe` to create the device files, which the driver needs",
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
        // A Slurm job is not meant to open the GPUs of other jobs, so GPU files that a device
        // cgroup blocks are reported as a note, not as a problem.
        let is_usual = file.obstacle == Obstacle::Cgroup && machine.is_slurm_job();
        let verdict = if is_usual {
            Verdict::Note
        } else {
            Verdict::Problem
        };
        findings.push(
            Finding::new("device files", verdict, text)
                .with_cure(describe_access_fix(machine, file.obstacle)),
        );
    }
    if !files.iter().any(|name| name == UVM_FILE) {
        findings.push(make_note(
            format!("there is no /dev/{UVM_FILE}, which CUDA programs need"),
            "run `nvidia-modprobe -u`, or load the kernel module nvidia-uvm",
        ));
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

struct InaccessibleFile {
    path: String,
    obstacle: Obstacle,
}

/// Returns the device files of the driver and its GPUs that this process may not open.
fn find_inaccessible_device_files(machine: &Machine) -> Vec<InaccessibleFile> {
    find_inaccessible_files(
        machine,
        "/dev",
        Access::READ_OK | Access::WRITE_OK,
        is_nvidia_device_file,
    )
}

/// Returns the files in a directory that this process may not open. `is_meant` selects the files by
/// name.
fn find_inaccessible_files(
    machine: &Machine,
    folder: &str,
    access: Access,
    is_meant: fn(&str) -> bool,
) -> Vec<InaccessibleFile> {
    let names = machine.list_directory_entries(folder).into_iter();
    let files = names.filter(|name| is_meant(name)).filter_map(|name| {
        let path = format!("{folder}/{name}");
        let obstacle = find_obstacle(machine, &path, access)?;
        Some(InaccessibleFile { path, obstacle })
    });
    files.collect()
}

/// Returns the obstacle to opening a device file. The file is not opened, because that would wake
/// its GPU.
pub(super) fn find_obstacle(machine: &Machine, path: &str, wanted: Access) -> Option<Obstacle> {
    obstacle_from_error(access(machine.resolve_path(path), wanted).err()?)
}

/// Returns the obstacle that an error of the kernel indicates. The kernel returns different errors
/// for a device cgroup that denies access and for a file mode that denies access.
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
            surroundings.missing_driver_cure().to_owned()
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
    use std::{fs, path::Path};

    use gpumon_probe::model::{Condition, Mode, Reading, Severity};

    use super::*;

    fn make_machine(root: &Path, file: &str, content: &str) -> Machine {
        let path = root.join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
        Machine::with_root(root)
    }

    #[test]
    fn each_failure_reason_has_its_cure() {
        let error = |code| Absence::DriverError { code };
        for (file, reason, text, cure) in [
            (
                "etc/none",
                Absence::NoPermission,
                "denies access to this user",
                "permissions of /dev/nvidia*",
            ),
            (
                ".dockerenv",
                Absence::NoPermission,
                "denies access to this user",
                "started with the GPU",
            ),
            (
                ".dockerenv",
                error(999),
                "driver error 999",
                "`systemctl daemon-reload`",
            ),
            ("etc/none", error(999), "driver error 999", "dmesg"),
            (
                "etc/none",
                error(16),
                "needs a reset",
                "nvidia-smi --gpu-reset",
            ),
            ("etc/none", error(8), "external power", "power cables"),
            ("etc/none", error(17), "device cgroup", "DeviceAllow"),
            (
                "etc/none",
                Absence::GpuLost,
                "fallen off the bus",
                "power supply",
            ),
        ] {
            let root = tempfile::tempdir().unwrap();
            let finding = make_gpu_failure_finding(
                &make_machine(root.path(), file, ""),
                format_gpu_name(0),
                "NVIDIA H100",
                &reason,
            );
            let found = finding.cure.unwrap();
            assert!(
                finding.text.contains(text) && found.contains(cure),
                "{file} {reason}: {} {found}",
                finding.text
            );
        }
    }

    #[test]
    fn mig_permission_cure_depends_on_container_or_scheduler() {
        for (file, content, words) in [
            ("dev/nvidia-caps/nvidia-cap12", "", "/dev/nvidia-caps"),
            (".dockerenv", "", "NVIDIA_MIG_MONITOR_DEVICES=all"),
            ("proc/self/environ", "SLURM_JOB_ID=7\0", "ConstrainDevices"),
        ] {
            let root = tempfile::tempdir().unwrap();
            let cure = describe_mig_access_fix(&make_machine(root.path(), file, content));
            assert!(
                cure.contains(words) && !cure.contains("disable"),
                "{file}: {cure}"
            );
        }
    }

    fn find_verdicts(change: impl FnOnce(&mut GpuDetails)) -> Vec<Verdict> {
        let mut details = GpuDetails::new_absent(3, None, 0, &Absence::NotSupported);
        change(&mut details);
        check_ecc(&details)
            .into_iter()
            .map(|finding| finding.verdict)
            .collect()
    }

    #[test]
    fn only_unusual_ecc_mode_is_reported() {
        let ecc = |current, pending| Reading::Now(Mode { current, pending });
        assert_eq!(find_verdicts(|_| {}), []);
        assert_eq!(find_verdicts(|it| it.modes.ecc = ecc(true, true)), []);
        assert_eq!(
            find_verdicts(|it| it.modes.ecc = ecc(true, false)),
            [Verdict::Warning]
        );
        assert_eq!(
            find_verdicts(|it| it.modes.ecc = ecc(false, false)),
            [Verdict::Note]
        );
        let errors = |now, ever| {
            find_verdicts(|it| {
                it.ecc.volatile.uncorrected_total = Reading::Now(now);
                it.ecc.aggregate.uncorrected_total = Reading::Now(ever);
            })
        };
        assert_eq!(errors(0, 0), []);
        assert_eq!(errors(0, 1), [Verdict::Note]);
        assert_eq!(errors(1, 1), [], "the condition reports them");
    }

    #[test]
    fn memory_conditions_are_reported_with_cures() {
        let mut sample = GpuSample::new_absent(3, None, 0, Health::Ok, &Absence::NotSupported);
        let action = RecoveryAction::GpuReset;
        for (severity, kind, verdict, has_cure) in [
            (
                Severity::Critical,
                ConditionKind::EccUncorrected { count: 1 },
                Verdict::Problem,
                true,
            ),
            (
                Severity::Warning,
                ConditionKind::RowRemap {
                    pending: true,
                    failed: false,
                },
                Verdict::Warning,
                true,
            ),
            (
                Severity::Critical,
                ConditionKind::RowRemap {
                    pending: true,
                    failed: true,
                },
                Verdict::Problem,
                false,
            ),
            (
                Severity::Critical,
                ConditionKind::RecoveryNeeded { action },
                Verdict::Problem,
                true,
            ),
        ] {
            sample.conditions = vec![Condition {
                since_ms: 0,
                severity,
                text: "text".to_owned(),
                kind,
            }];
            let found = list_condition_findings(Vendor::Nvidia, &sample)
                .next()
                .unwrap();
            assert_eq!((found.verdict, found.cure.is_some()), (verdict, has_cure));
        }
    }
}

#[cfg(test)]
mod device_files_tests {
    use std::os::unix::fs::PermissionsExt;

    use super::{super::report::Verdict, *};

    #[test]
    fn device_access_fix_depends_on_container_or_scheduler() {
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
