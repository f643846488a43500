//! Metrics of processes, which are only written on request. Every process creates new series, so
//! their number is limited.

use gpumon_probe::model::Process;

use super::{
    scrape::{GpuScrape, Scrape, reading_text, to_float, to_ratio},
    text::{Page, SeriesKind::Gauge},
};

/// The maximum number of processes on a page. The processes with the most memory are kept.
const MAX_PROCESSES: usize = 100;

/// A metric of processes: its name, help text, and a function that returns a process's value.
type ProcessMetric = (&'static str, &'static str, fn(&Process) -> Option<f64>);

const PROCESS_METRICS: &[ProcessMetric] = &[
    (
        "gpumon_process_memory_bytes",
        "Device memory used by the process.",
        |process| to_float(&process.memory_bytes),
    ),
    (
        "gpumon_process_sm_utilization_ratio",
        "GPU utilization of the process.",
        |process| to_ratio(&process.sm_percent),
    ),
];

pub(super) fn write_process_metrics(page: &mut Page, scrape: &Scrape<'_>) {
    let mut all: Vec<(&GpuScrape<'_>, &Process)> = Vec::new();
    for reported in &scrape.gpus {
        let processes = reported.readings.and_then(|gpu| gpu.processes.value());
        all.extend(
            processes
                .into_iter()
                .flatten()
                .map(|process| (reported, process)),
        );
    }
    all.sort_by_key(|(_, process)| std::cmp::Reverse(process.memory_bytes.value().copied()));
    // A process that both computes and renders, or that uses two MIG devices, can be listed twice.
    let mut known = std::collections::BTreeSet::new();
    all.retain(|(reported, process)| known.insert((reported.gpu.index, process.pid)));
    // Samples also limit their number of processes. Those that they omit are counted here.
    let unlisted: u32 = scrape
        .gpus
        .iter()
        .filter_map(|reported| Some(reported.readings?.processes_omitted))
        .sum();
    let omitted = all.len().saturating_sub(MAX_PROCESSES) + unlisted as usize;
    all.truncate(MAX_PROCESSES);
    for (name, help, read) in PROCESS_METRICS {
        let mut family = page.start_family(name, Gauge, help);
        for (reported, process) in &all {
            let pid = process.pid.to_string();
            let rest = [
                ("pid", pid.as_str()),
                ("name", reading_text(&process.name)),
                ("user", reading_text(&process.user)),
            ];
            family.add_series(&reported.labels, &rest, read(process));
        }
    }
    let help = "Number of processes without series because of the limit of 100.";
    let omitted = scrape.sample.map(|_| omitted as f64);
    page.add_single_series("gpumon_processes_omitted", Gauge, help, omitted);
}
