//! Who is there, and how they are.

use std::collections::BTreeSet;

use gpumon_probe::model::{Condition, ConditionKind, GpuSample, Health, Platform};

use super::{
    scrape::{Scrape, Told, text, word},
    text::{Kind::Gauge, Page},
};
use crate::frame::CollectorState;

pub(super) fn write(page: &mut Page, scrape: &Scrape<'_>) {
    let version = scrape.snapshot.version.as_str();
    page.family("gpumon_build_info", Gauge, "Version of gpumon, in the label version; always 1.")
        .add([("version", version)], Some(1.0));
    let collector = &scrape.snapshot.collector;
    let runs = collector.state == CollectorState::Running;
    page.family("gpumon_collector_up", Gauge, "Whether the collector process is running.")
        .add([], Some(f64::from(u8::from(runs))));
    page.family("gpumon_collector_state_info", Gauge, "State of the collector process, in the label state; always 1.")
        .add([("state", word(&collector.state).as_str())], Some(1.0));
    let newest = scrape.snapshot.sample.as_ref();
    page.family("gpumon_sample_age_seconds", Gauge, "Time since the newest sample.")
        .add([], newest.map(|sample| seconds_since(scrape, sample.at_ms)));
    infos(page, scrape);
    ups(page, scrape);
    conditions(page, scrape);
}

fn infos(page: &mut Page, scrape: &Scrape<'_>) {
    let platform = scrape.snapshot.inventory.as_ref().map(|inventory| &inventory.platform);
    let driver = platform.map_or("", |Platform { driver_version, .. }| text(driver_version));
    let source = platform.map(|platform| word(&platform.source)).unwrap_or_default();
    let mut info = page.family(
        "gpumon_gpu_info",
        Gauge,
        "Name, driver and PCI bus ID of the GPU, and the data source (nvml or simulated); always 1.",
    );
    for told in &scrape.gpus {
        let rest = [
            ("name", text(&told.gpu.name)),
            ("driver", driver),
            ("pci_bus_id", text(&told.gpu.pci_bus_id)),
            ("source", source.as_str()),
        ];
        info.add(told.labels().into_iter().chain(rest), Some(1.0));
    }
}

fn ups(page: &mut Page, scrape: &Scrape<'_>) {
    let up = "Whether the GPU responds: 0 if it is lost, not responding or cannot be opened.";
    scrape.by_gpu(page, "gpumon_gpu_up", Gauge, up, |told| told.sample.map(is_up));
    let age = "Time since the last response of the GPU.";
    scrape.by_gpu(page, "gpumon_gpu_sample_age_seconds", Gauge, age, |told| {
        told.sample.map(|sample| seconds_since(scrape, sample.at_ms))
    });
    let mut state = page.family("gpumon_gpu_state_info", Gauge, "State of the GPU, in the label state; always 1.");
    for (told, sample) in sampled(scrape) {
        state.add(told.labels().into_iter().chain([("state", sample.health.word())]), Some(1.0));
    }
}

/// A condition that is over is there no more. Two that differ in nothing that is told are told once.
fn conditions(page: &mut Page, scrape: &Scrape<'_>) {
    let mut family = page.family("gpumon_condition", Gauge, "1 while the condition lasts.");
    for (told, sample) in sampled(scrape) {
        let lasting: BTreeSet<_> = sample.conditions.iter().map(condition_labels).collect();
        for (condition, code, severity) in &lasting {
            let rest = [("condition", condition.as_str()), ("code", code), ("severity", severity)];
            family.add(told.labels().into_iter().chain(rest), Some(1.0));
        }
    }
}

fn condition_labels(condition: &Condition) -> (String, String, String) {
    let kind = serde_json::to_value(&condition.kind).ok();
    let kind = kind.as_ref().and_then(|kind| kind["condition"].as_str()).unwrap_or_default().to_owned();
    let code = if let ConditionKind::Xid { code, .. } = condition.kind { code.to_string() } else { String::new() };
    (kind, code, word(&condition.severity))
}

fn sampled<'a>(scrape: &'a Scrape<'a>) -> impl Iterator<Item = (&'a Told<'a>, &'a GpuSample)> {
    scrape.gpus.iter().filter_map(|told| Some((told, told.sample?)))
}

fn is_up(sample: &GpuSample) -> f64 {
    match sample.health {
        Health::Ok | Health::Asleep { .. } => 1.0,
        Health::Hung { .. } | Health::Lost { .. } | Health::Failed { .. } => 0.0,
    }
}

fn seconds_since(scrape: &Scrape<'_>, at_ms: u64) -> f64 {
    scrape.now_ms.saturating_sub(at_ms) as f64 / 1000.0
}
