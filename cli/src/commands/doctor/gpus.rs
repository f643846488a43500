//! Each GPU: whether it answers, its settings, and what is the matter with it.

use gpumon_probe::model::{Absence, Gpu, GpuDetails, GpuSample, Health, Severity};

use super::{
    driver::Answer,
    finding::{Finding, Verdict},
};

pub(super) fn check(answer: &Answer) -> Vec<Finding> {
    let mut findings = Vec::new();
    for gpu in &answer.inventory.gpus {
        let sample = answer.gpus().find(|sample| sample.index == gpu.index);
        findings.push(health(gpu, sample));
        let Some(sample) = sample else { continue };
        findings.extend(conditions(sample));
        if let (Health::Ok, Some(details)) = (&sample.health, answer.details.get(&gpu.index)) {
            findings.extend(persistence(details));
            findings.extend(mig(gpu, details));
        }
    }
    findings
}

pub(super) fn name(index: u32) -> String {
    format!("gpu {index}")
}

fn health(gpu: &Gpu, sample: Option<&GpuSample>) -> Finding {
    let check = name(gpu.index);
    let reset = "`gpumon pause`, then `nvidia-smi --gpu-reset`; if that does not help, reboot";
    let model = gpu.name.value().map_or("a GPU of unknown name", String::as_str);
    let silent =
        |sample: &GpuSample| gpu.uuid.is_none() && sample.utilization.gpu_percent.absence() == Some(&Absence::NoAnswer);
    match sample.map(|sample| (&sample.health, silent(sample))) {
        Some((Health::Ok, false)) => Finding::ok(check, model),
        None | Some((Health::Ok, true)) => {
            let text = "the driver has not responded within a few seconds";
            Finding::problem(check, text, format!("see `dmesg | grep -i nvrm`; {reset}"))
        }
        Some((Health::Asleep { .. }, _)) => {
            Finding::note(check, format!("{model}, switched off by the system to save power; it was not woken"))
        }
        Some((Health::Hung { .. }, _)) => {
            Finding::problem(check, format!("{model}: a call to the driver does not come back"), reset)
        }
        Some((Health::Lost { .. }, _)) => {
            let cure = "see `dmesg | grep -i xid`; reboot, and if it happens again check power supply and seat";
            Finding::problem(check, format!("{model} has fallen off the bus"), cure)
        }
        Some((Health::Failed { reason, .. }, _)) => {
            Finding::problem(check, format!("{model} cannot be opened: {reason}"), reset)
        }
    }
}

fn conditions(sample: &GpuSample) -> impl Iterator<Item = Finding> {
    sample.conditions.iter().map(|condition| {
        let verdict = match condition.severity {
            Severity::Notice => Verdict::Note,
            Severity::Warning => Verdict::Warning,
            Severity::Critical => Verdict::Problem,
        };
        // Its text tells what to do, where anything is to be done.
        Finding::new(name(sample.index), verdict, &condition.text)
    })
}

fn persistence(details: &GpuDetails) -> Option<Finding> {
    (details.modes.persistence.value() == Some(&false)).then(|| {
        let text = "persistence mode is off: the driver lets go of the GPU with its last user, and takes seconds to \
                    open it for the next";
        Finding::note(name(details.index), text).with_cure("enable the service nvidia-persistenced")
    })
}

fn mig(gpu: &Gpu, details: &GpuDetails) -> Option<Finding> {
    let mode = details.modes.mig.value()?;
    let check = name(gpu.index);
    match (mode.current, mode.pending, gpu.mig_devices.len()) {
        (current, pending, _) if current != pending => {
            let now = if pending { "on" } else { "off" };
            let text = format!("MIG mode change ({now}) pending until the GPU is reset");
            Some(Finding::warning(check, text, "`gpumon pause`, then `nvidia-smi --gpu-reset`"))
        }
        (true, _, 0) => {
            let text = "MIG is enabled without instances, so that nothing can run on the GPU";
            Some(Finding::warning(check, text, "create instances with `nvidia-smi mig -cgi ... -C`, or disable MIG"))
        }
        (true, _, count) => Some(Finding::note(
            check,
            format!("MIG is enabled with {count} devices; the driver reports no utilization of the whole GPU"),
        )),
        (false, ..) => None,
    }
}
