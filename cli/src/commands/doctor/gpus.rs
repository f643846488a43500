//! Each GPU: whether it answers, its settings, and what is the matter with it.

use gpumon_probe::{
    model::{Absence, ConditionKind, Gpu, GpuDetails, GpuSample, Health, RecoveryAction, Vendor},
    vendor::{Explanation, explain_absence, log_advice, reset_advice},
};

use super::{
    device_files,
    machine::Machine,
    report::{Finding, Verdict},
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
    let silent = |sample: &GpuSample| {
        let readings = [
            sample.utilization.gpu_percent.absence(),
            sample.memory.total_bytes.absence(),
        ];
        readings == [Some(&Absence::NoAnswer); 2]
    };
    match sample.map(|sample| (&sample.health, silent(sample))) {
        Some((Health::Ok, false)) => Finding::ok(check, model),
        None | Some((Health::Ok, true)) => {
            let text = "the driver has not responded within a few seconds";
            Finding::problem(check, text, format!("{}; {reset}", log_advice(gpu.vendor)))
        }
        Some((Health::Asleep { .. }, _)) => Finding::note(
            check,
            format!("{model}, switched off by the system to save power; it was not woken"),
        ),
        Some((Health::Hung { .. }, _)) => Finding::problem(
            check,
            format!("{model}: a call to the driver does not come back"),
            reset,
        ),
        Some((
            Health::Failed {
                meaning, advice, ..
            },
            _,
        )) if gpu.vendor != Vendor::Nvidia => {
            Finding::problem(check, format!("{model} cannot be read: {meaning}"), advice)
        }
        Some((Health::Lost { .. }, _)) if gpu.vendor != Vendor::Nvidia => {
            let text = format!("{model} is no longer there");
            Finding::problem(check, text, log_advice(gpu.vendor))
        }
        Some((Health::Lost { .. }, _)) => failed(machine, check, model, &Absence::GpuLost),
        Some((Health::Failed { reason, .. }, _)) => failed(machine, check, model, reason),
    }
}

/// Reports a GPU that the driver cannot open or read, with the cure of its reason.
fn failed(machine: &Machine, check: String, model: &str, reason: &Absence) -> Finding {
    let Some(Explanation { meaning, cure }) = explain_absence(reason, machine.surroundings())
    else {
        return Finding::problem(
            check,
            format!("{model} cannot be opened: {reason}"),
            log_advice(Vendor::Nvidia),
        );
    };
    let obstacle = device_files::find_closed_files(machine)
        .into_iter()
        .next()
        .map(|file| file.obstacle);
    match (reason, obstacle) {
        (Absence::GpuLost, _) => {
            Finding::problem(check, format!("{model} has fallen off the bus"), cure)
        }
        (Absence::NoPermission, Some(obstacle)) => Finding::problem(
            check,
            format!("{model} cannot be opened: {meaning}"),
            device_files::access_cure(machine, obstacle),
        ),
        (Absence::DriverError { code }, _) => Finding::problem(
            check,
            format!("{model} cannot be opened: driver error {code}, {meaning}"),
            cure,
        ),
        _ => Finding::problem(check, format!("{model} cannot be opened: {meaning}"), cure),
    }
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

/// Reports the mode of error correction, and errors of earlier starts, which are no condition.
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
    let check = name(gpu.index);
    if let (true, Some(reason)) = (mode.current, sample.mig_devices.absence()) {
        let (text, cure) = match reason {
            Absence::NoPermission => (
                "MIG is enabled, and this user may see none of its devices".to_owned(),
                mig_permission(machine),
            ),
            reason => {
                let cure = explain_absence(reason, machine.surroundings());
                let cure = cure.map_or(log_advice(Vendor::Nvidia), |explanation| explanation.cure);
                (
                    format!("MIG is enabled, and its devices cannot be listed: {reason}"),
                    cure.to_owned(),
                )
            }
        };
        return Some(Finding::warning(check, text, cure));
    }
    match (mode.current, mode.pending, gpu.mig_devices.len()) {
        (current, pending, _) if current != pending => {
            let now = if pending { "on" } else { "off" };
            let text = format!("MIG mode change ({now}) pending until the GPU is reset");
            Some(Finding::warning(check, text, RESET))
        }
        (true, _, 0) => {
            let text = "MIG is enabled without instances, so that nothing can run on the GPU";
            Some(Finding::warning(
                check,
                text,
                "create instances with `nvidia-smi mig -cgi ... -C`, or disable MIG",
            ))
        }
        (true, _, count) => Some(Finding::note(
            check,
            format!(
                "MIG is enabled with {count} devices; the driver reports no utilization of the whole GPU"
            ),
        )),
        (false, ..) => None,
    }
}

/// Returns how to get access to MIG devices.
fn mig_permission(machine: &Machine) -> String {
    if machine.is_slurm_job() {
        return "request a MIG device for the job (`--gres`): with ConstrainDevices, Slurm lets a job open only its own".to_owned();
    }
    if machine.surroundings().container().is_some() {
        return "start the container with the MIG device (NVIDIA_VISIBLE_DEVICES=MIG-...); a monitor of all needs \
                NVIDIA_VISIBLE_DEVICES=all, NVIDIA_MIG_MONITOR_DEVICES=all and CAP_SYS_ADMIN"
            .to_owned();
    }
    let closed = device_files::find_closed_capabilities(machine);
    let files = closed
        .iter()
        .map(|file| file.path.as_str())
        .collect::<Vec<_>>()
        .join(", ");
    let which = if files.is_empty() {
        String::new()
    } else {
        format!(" ({files})")
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
