//! Where gpumon runs: a container, another PID namespace, Windows' Linux.

use gpumon_probe::model::GpuSample;

use super::{finding::Finding, machine::Machine};
use crate::{
    describe::unlisted_processes,
    driver::{Answer, Driver},
};

pub(super) fn check(machine: &Machine, driver: &Driver) -> Vec<Finding> {
    let mut findings = Vec::new();
    if machine.is_wsl() {
        let text = "this is WSL, whose driver reports neither processes nor most readings below";
        findings.push(Finding::note("wsl", text));
    }
    if let Some(container) = machine.surroundings().container() {
        findings.push(Finding::note(
            "container",
            format!("gpumon runs in one ({container})"),
        ));
    }
    findings.extend(driver.answer().map(|answer| processes(machine, answer)));
    findings
}

/// Whether the PIDs that the driver tells are those of this `/proc`.
fn processes(machine: &Machine, answer: &Answer) -> Finding {
    let processes: Vec<_> = answer
        .gpus()
        .filter_map(|gpu: &GpuSample| gpu.processes.value())
        .flatten()
        .collect();
    let strange = processes
        .iter()
        .filter(|process| !machine.roots().proc.join(process.pid.to_string()).exists());
    let strange: Vec<_> = strange.map(|process| process.pid.to_string()).collect();
    let cure = "in a container, share the host's PIDs (docker run --pid=host, or hostPID: true in the pod)";
    let unlisted = answer
        .gpus()
        .filter_map(|gpu| Some(format!("GPU {}: {}", gpu.index, unlisted_processes(gpu)?)));
    let unlisted = unlisted.collect::<Vec<_>>().join("; ");
    if !unlisted.is_empty() {
        return Finding::warning("processes", unlisted, cure);
    }
    if strange.is_empty() {
        return Finding::ok(
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
        "{} of {} on the GPUs are not in this /proc (PID {some}{more}), so that their users are unknown",
        strange.len(),
        processes.len()
    );
    Finding::warning("processes", text, cure)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn container_in_wsl_is_noted_as_both() {
        let root = tempfile::tempdir().unwrap();
        let machine = Machine::below(root.path());
        assert_eq!(check(&machine, &Driver::Silent).len(), 0);
        fs::create_dir_all(root.path().join("proc/sys/kernel")).unwrap();
        fs::write(
            root.path().join("proc/sys/kernel/osrelease"),
            "5.15.90.1-microsoft-standard-WSL2\n",
        )
        .unwrap();
        fs::write(root.path().join(".dockerenv"), "").unwrap();
        let checks: Vec<_> = check(&machine, &Driver::Silent)
            .into_iter()
            .map(|finding| finding.check)
            .collect();
        assert_eq!(checks, ["wsl", "container"]);
    }
}
