//! Checks of each GPU: its health, settings and conditions.

use gpumon_probe::{
    model::{Absence, ConditionKind, Gpu, GpuDetails, GpuSample, Health, RecoveryAction, Vendor},
    vendor::{Explanation, explain_absence, log_advice, reset_advice},
};

use super::{
    device_files,
    finding::{Finding, Verdict},
    machine::Machine,
};
use crate::driver::Answer;

const RESET: &str = "`gpumon pause`, then `nvidia-smi --gpu-reset`, when no work runs on it";

pub(super) fn check(machine: &Machine, answer: &Answer) -> Vec<Finding> {
    let mut findings = Vec::new();
    for gpu in &answer.inventory.gpus {
        let sample = answer.gpus().find(|sample| sample.index == gpu.index);
        findings.push(health(machine, gpu, sample));
        let Some(sample) = sample else { continue };
        findings.extend(conditions(gpu.vendor, sample));
        if let (Health::Ok, Some(details)) = (&sample.health, answer.details.get(&gpu.index)) {
            findings.extend(persistence(machine, details));
            findings.extend(mig(machine, gpu, sample, details));
            findings.extend(error_correction(details));
        }
    }
    findings
}

pub(super) fn name(index: u32) -> String {
    format!("gpu {index}")
}

fn health(machine: &Machine, gpu: &Gpu, sample: Option<&GpuSample>) -> Finding {
    let check = name(gpu.index);
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
            Finding::problem(check, text, format!("{}; {reset}", log_advice(gpu.vendor)))
        }
        Some(sample) => match &sample.health {
            Health::Ok => Finding::ok(check, model),
            Health::Asleep { .. } => Finding::note(
                check,
                format!("{model}, switched off by the system to save power; it was not woken"),
            ),
            Health::Hung { .. } => {
                let text = format!("{model}: a call to the driver does not come back");
                Finding::problem(check, text, reset)
            }
            Health::Lost { .. } if is_nvidia => failed(machine, check, model, &Absence::GpuLost),
            Health::Failed { reason, .. } if is_nvidia => failed(machine, check, model, reason),
            Health::Lost { .. } => {
                let text = format!("{model} is no longer there");
                Finding::problem(check, text, log_advice(gpu.vendor))
            }
            Health::Failed {
                meaning, advice, ..
            } => Finding::problem(check, format!("{model} cannot be read: {meaning}"), advice),
        },
    }
}

/// Returns the finding for a GPU that the driver cannot open or read, with advice for the reason.
fn failed(machine: &Machine, check: String, model: &str, reason: &Absence) -> Finding {
    let Some(Explanation { meaning, cure }) = explain_absence(reason, machine.surroundings())
    else {
        let text = format!("{model} cannot be opened: {reason}");
        return Finding::problem(check, text, log_advice(Vendor::Nvidia));
    };
    let text = match reason {
        Absence::GpuLost => format!("{model} has fallen off the bus"),
        Absence::DriverError { code } => {
            format!("{model} cannot be opened: driver error {code}, {meaning}")
        }
        _ => format!("{model} cannot be opened: {meaning}"),
    };
    let closed = device_files::find_closed_files(machine);
    let cure = match closed.first().filter(|_| *reason == Absence::NoPermission) {
        Some(file) => device_files::access_cure(machine, file.obstacle),
        None => cure.to_owned(),
    };
    Finding::problem(check, text, cure)
}

fn conditions(vendor: Vendor, sample: &GpuSample) -> impl Iterator<Item = Finding> {
    sample.conditions.iter().map(move |condition| {
        let verdict = Verdict::from(condition.severity);
        let finding = Finding::new(name(sample.index), verdict, &condition.text);
        match condition.kind {
            ConditionKind::EccUncorrected { .. }
            | ConditionKind::PageRetirementPending
            | ConditionKind::RowRemap { failed: false, .. }
            | ConditionKind::RecoveryNeeded {
                action: RecoveryAction::GpuReset | RecoveryAction::DrainAndReset,
            } if vendor == Vendor::Nvidia => finding.with_cure(RESET),
            _ => finding,
        }
    })
}

/// Reports the ECC mode, and errors before the last restart, for which there is no condition.
fn error_correction(details: &GpuDetails) -> Vec<Finding> {
    let check = || name(details.index);
    let mut findings = Vec::new();
    if let Some(ecc) = details.modes.ecc.value() {
        if !ecc.current {
            findings.push(Finding::note(
                check(),
                "ECC is off: memory errors go unnoticed",
            ));
        }
        if ecc.current != ecc.pending {
            let text = "ECC mode change pending until the GPU is reset";
            findings.push(Finding::warning(check(), text, RESET));
        }
    }
    let [now, ever] = [&details.ecc.volatile, &details.ecc.aggregate]
        .map(|errors| errors.uncorrected_total.value().copied().unwrap_or(0));
    if now == 0 && ever > 0 {
        let text = format!(
            "{ever} memory errors that could not be corrected in its life, none since the last \
             start"
        );
        findings.push(Finding::note(check(), text));
    }
    findings
}

fn persistence(machine: &Machine, details: &GpuDetails) -> Option<Finding> {
    (details.modes.persistence.value() == Some(&false)).then(|| {
        let text = "persistence mode is off: the driver lets go of the GPU with its last user, and takes seconds to \
                    open it for the next";
        let cure = match machine.surroundings().container() {
            Some(_) => "enable the service nvidia-persistenced on the host",
            None => "enable the service nvidia-persistenced",
        };
        Finding::note(name(details.index), text).with_cure(cure)
    })
}

fn mig(machine: &Machine, gpu: &Gpu, sample: &GpuSample, details: &GpuDetails) -> Option<Finding> {
    let mode = details.modes.mig.value()?;
    let warning = |text: &str, cure: &str| Some(Finding::warning(name(gpu.index), text, cure));
    match sample.mig_devices.absence().filter(|_| mode.current) {
        Some(Absence::NoPermission) => {
            let text = "MIG is enabled, and this user may see none of its devices";
            return warning(text, &mig_permission(machine));
        }
        Some(reason) => {
            let cure = explain_absence(reason, machine.surroundings());
            let cure = cure.map_or(log_advice(Vendor::Nvidia), |explanation| explanation.cure);
            let text = format!("MIG is enabled, and its devices cannot be listed: {reason}");
            return warning(&text, cure);
        }
        None => {}
    }
    match gpu.mig_devices.len() {
        _ if mode.current != mode.pending => {
            let now = if mode.pending { "on" } else { "off" };
            let text = format!("MIG mode change ({now}) pending until the GPU is reset");
            warning(&text, RESET)
        }
        _ if !mode.current => None,
        0 => warning(
            "MIG is enabled without instances, so that nothing can run on the GPU",
            "create instances with `nvidia-smi mig -cgi ... -C`, or disable MIG",
        ),
        count => {
            let text = format!(
                "MIG is enabled with {count} devices; the driver reports no utilization of the \
                 whole GPU"
            );
            Some(Finding::note(name(gpu.index), text))
        }
    }
}

/// Returns advice on how to get access to MIG devices.
fn mig_permission(machine: &Machine) -> String {
    if machine.is_slurm_job() {
        return "request a MIG device for the job (`--gres`): with ConstrainDevices, Slurm lets a \
                job open only its own"
            .to_owned();
    }
    if machine.surroundings().container().is_some() {
        return "start the container with the MIG device (NVIDIA_VISIBLE_DEVICES=MIG-...); a \
                monitor of all needs NVIDIA_VISIBLE_DEVICES=all, NVIDIA_MIG_MONITOR_DEVICES=all \
                and CAP_SYS_ADMIN"
            .to_owned();
    }
    let closed = device_files::find_closed_capabilities(machine);
    let files: Vec<_> = closed.into_iter().map(|file| file.path).collect();
    let which = match &files[..] {
        [] => String::new(),
        files => format!(" ({})", files.join(", ")),
    };
    format!(
        "let this user read the files of the devices in /dev/nvidia-caps{which}; \
         /proc/driver/nvidia/capabilities/gpu*/mig/gi*/access names each of them by its DeviceFileMinor"
    )
}

#[cfg(test)]
mod tests {
    use std::{fs, path::Path};

    use gpumon_probe::model::{Condition, Mode, Reading, Severity};

    use super::*;

    fn below(root: &Path, file: &str, content: &str) -> Machine {
        let path = root.join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
        Machine::below(root)
    }

    #[test]
    fn each_failure_reason_has_its_cure() {
        let error = |code| Absence::DriverError { code };
        for (file, reason, text, cure) in [
            (
                "etc/none",
                Absence::NoPermission,
                "refuses this user",
                "permissions of /dev/nvidia*",
            ),
            (
                ".dockerenv",
                Absence::NoPermission,
                "refuses this user",
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
            let finding = failed(
                &below(root.path(), file, ""),
                name(0),
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
    fn mig_permission_cure_depends_on_surroundings() {
        for (file, content, words) in [
            ("dev/nvidia-caps/nvidia-cap12", "", "/dev/nvidia-caps"),
            (".dockerenv", "", "NVIDIA_MIG_MONITOR_DEVICES=all"),
            ("proc/self/environ", "SLURM_JOB_ID=7\0", "ConstrainDevices"),
        ] {
            let root = tempfile::tempdir().unwrap();
            let cure = mig_permission(&below(root.path(), file, content));
            assert!(
                cure.contains(words) && !cure.contains("disable"),
                "{file}: {cure}"
            );
        }
    }

    fn find_verdicts(change: impl FnOnce(&mut GpuDetails)) -> Vec<Verdict> {
        let mut details = GpuDetails::absent(3, None, 0, &Absence::NotSupported);
        change(&mut details);
        error_correction(&details)
            .into_iter()
            .map(|finding| finding.verdict)
            .collect()
    }

    #[test]
    fn only_unusual_error_correction_is_finding() {
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
    fn memory_conditions_are_findings_with_cures() {
        let mut sample = GpuSample::absent(3, None, 0, Health::Ok, &Absence::NotSupported);
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
            let found = conditions(Vendor::Nvidia, &sample).next().unwrap();
            assert_eq!((found.verdict, found.cure.is_some()), (verdict, has_cure));
        }
    }
}
