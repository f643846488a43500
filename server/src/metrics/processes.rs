//! Metrics of processes, on request only: every process creates new series, so their number is
//! limited.

use gpumon_probe::model::Process;

use super::{
    scrape::{Scrape, Told, count, ratio, text},
    text::{Kind::Gauge, Page},
};

/// The maximum number of processes, those with the most memory.
const MOST: usize = 100;

/// A metric of processes: its name, help, and a function that returns the value.
type Series = (&'static str, &'static str, fn(&Process) -> Option<f64>);

const SERIES: &[Series] = &[
    (
        "gpumon_process_memory_bytes",
        "Device memory used by the process.",
        |process| count(&process.memory_bytes),
    ),
    (
        "gpumon_process_sm_utilization_ratio",
        "GPU utilization of the process.",
        |process| ratio(&process.sm_percent),
    ),
];

pub(super) fn write(page: &mut Page, scrape: &Scrape<'_>) {
    let mut all: Vec<(&Told<'_>, &Process)> = Vec::new();
    for told in &scrape.gpus {
        let processes = told.readings.and_then(|gpu| gpu.processes.value());
        all.extend(
            processes
                .into_iter()
                .flatten()
                .map(|process| (told, process)),
        );
    }
    all.sort_by_key(|(_, process)| std::cmp::Reverse(process.memory_bytes.value().copied()));
    // A process that both computes and renders, or that uses two MIG devices, can be listed twice.
    let mut known = std::collections::BTreeSet::new();
    all.retain(|(told, process)| known.insert((told.gpu.index, process.pid)));
    // The number of processes in a sample is also limited.
    let unlisted: u32 = scrape
        .gpus
        .iter()
        .filter_map(|told| Some(told.readings?.processes_omitted))
        .sum();
    let omitted = all.len().saturating_sub(MOST) + unlisted as usize;
    all.truncate(MOST);
    for (name, help, read) in SERIES {
        let mut family = page.family(name, Gauge, help);
        for (told, process) in &all {
            let pid = process.pid.to_string();
            let rest = [
                ("pid", pid.as_str()),
                ("name", text(&process.name)),
                ("user", text(&process.user)),
            ];
            family.add(&told.labels, &rest, read(process));
        }
    }
    let help = "Number of processes without series because of the limit of 100.";
    let omitted = scrape.sample.map(|_| omitted as f64);
    page.add_single("gpumon_processes_omitted", Gauge, help, omitted);
}
