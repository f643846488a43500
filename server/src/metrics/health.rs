//! The presence and health of GPUs, and the collector's state. Each possible state has a series
//! with the value 0 or 1.

use gpumon_probe::model::{Condition, ConditionKind, GpuSample, Health, Vendor};

use super::{
    scrape::{Scrape, json_name, reading_text, to_flag},
    text::{
        Labels, Page,
        SeriesKind::{Counter, Gauge},
    },
};
use crate::{frame::CollectorState, hub::VERSION};

pub(super) fn write_health_metrics(page: &mut Page, scrape: &Scrape<'_>) {
    let none = Labels::default();
    page.start_family(
        "gpumon_build_info",
        Gauge,
        "Version of gpumon, in the label version; always 1.",
    )
    .add_series(&none, &[("version", VERSION)], Some(1.0));
    let state = scrape.known.collector.state;
    let is_running = Some(to_flag(state == CollectorState::Running));
    let help = "Whether the collector process is running.";
    page.add_single_series("gpumon_collector_up", Gauge, help, is_running);
    let mut states = page.start_family(
        "gpumon_collector_state",
        Gauge,
        "1 for the current state of the collector process, 0 for the other states.",
    );
    let known = CollectorState::ALL.map(|known| (json_name(&known), state == known));
    states.add_states(&none, "state", known);
    let newest = scrape.known.sample.as_ref();
    let age = newest.map(|sample| seconds_since(scrape, sample.at_ms));
    let help = "Time since the newest sample.";
    page.add_single_series("gpumon_sample_age_seconds", Gauge, help, age);
    if let Some(refused) = &scrape.known.refused {
        let help = "Wrong tokens and passwords that were refused since the server was started.";
        let mut family = page.start_family("gpumon_refused_credentials_total", Counter, help);
        for (kind, count) in refused.counts_by_kind() {
            family.add_series(&none, &[("kind", &kind.to_string())], Some(count as f64));
        }
    }
    write_infos(page, scrape);
    write_up_states(page, scrape);
    write_conditions(page, scrape);
    write_xids(page, scrape);
}

fn write_infos(page: &mut Page, scrape: &Scrape<'_>) {
    let platform = scrape
        .known
        .inventory
        .as_ref()
        .map(|inventory| &inventory.platform);
    let source = |vendor: Vendor| match platform {
        Some(platform) if vendor == Vendor::Nvidia || platform.is_simulated => {
            json_name(&platform.source())
        }
        // For GPUs of other vendors, the source is the vendor's name, because their drivers have no
        // library.
        Some(_) => json_name(&vendor),
        None => String::new(),
    };
    let mut info = page.start_family(
        "gpumon_gpu_info",
        Gauge,
        "Name, driver and PCI bus ID of the GPU, and the data source (nvml, amd, intel or \
         simulated); always 1.",
    );
    for reported in &scrape.gpus {
        let source = source(reported.gpu.vendor);
        let driver = platform.and_then(|platform| platform.find_driver(reported.gpu.vendor));
        let rest = [
            ("name", reading_text(&reported.gpu.name)),
            (
                "driver",
                driver.map_or("", |driver| reading_text(&driver.version)),
            ),
            ("pci_bus_id", reading_text(&reported.gpu.pci_bus_id)),
            ("source", &source),
        ];
        info.add_series(&reported.labels, &rest, Some(1.0));
    }
}

fn write_up_states(page: &mut Page, scrape: &Scrape<'_>) {
    let up = "Whether the GPU responds: 0 if it is lost, does not respond, or cannot be read.";
    scrape.add_series_per_gpu(page, "gpumon_gpu_up", Gauge, up, |reported| {
        reported.sample.map(gpu_up_value)
    });
    let age = "Time since the last response of the GPU.";
    scrape.add_series_per_gpu(
        page,
        "gpumon_gpu_sample_age_seconds",
        Gauge,
        age,
        |reported| {
            reported
                .sample
                .map(|sample| seconds_since(scrape, sample.at_ms))
        },
    );
    let mut states = page.start_family(
        "gpumon_gpu_state",
        Gauge,
        "1 for the current state of the GPU, 0 for the other states.",
    );
    for (reported, sample) in scrape.gpus_with_samples() {
        let known = Health::TAGS.iter();
        let known = known.map(|state| (state, sample.health.json_name() == *state));
        states.add_states(&reported.labels, "state", known);
    }
}

fn write_conditions(page: &mut Page, scrape: &Scrape<'_>) {
    let mut family = page.start_family(
        "gpumon_condition",
        Gauge,
        "1 while the condition lasts, 0 otherwise.",
    );
    for (reported, sample) in scrape.gpus_with_samples() {
        let lasts = |kind: &str| {
            let mut lasting = sample.conditions.iter();
            lasting.any(|condition| condition.kind.tag() == Some(kind))
        };
        let kinds = ConditionKind::TAGS.iter().map(|kind| (kind, lasts(kind)));
        family.add_states(&reported.labels, "condition", kinds);
    }
    let help =
        "Severity of a condition while it lasts: 1 for a notice, 2 for a warning, 3 if critical.";
    let mut family = page.start_family("gpumon_condition_severity", Gauge, help);
    for (reported, sample) in scrape.gpus_with_samples() {
        for kind in ConditionKind::TAGS {
            let same = sample
                .conditions
                .iter()
                .filter(|condition| condition.kind.tag() == Some(kind));
            let worst = same.map(|condition| condition.severity.rank()).max();
            family.add_series(
                &reported.labels,
                &[("condition", kind)],
                worst.map(f64::from),
            );
        }
    }
}

/// Writes Xid series. Every code that occurred since the server's start keeps its series, so that
/// the end of an Xid is visible.
fn write_xids(page: &mut Page, scrape: &Scrape<'_>) {
    let code_of = |condition: &Condition| match condition.kind {
        ConditionKind::Xid { code, .. } => Some(code),
        _ => None,
    };
    let mut family = page.start_family(
        "gpumon_gpu_xid",
        Gauge,
        "1 while this Xid is active, 0 afterwards.",
    );
    for (reported, sample) in scrape.gpus_with_samples() {
        let mut codes: Vec<u32> = scrape
            .known
            .xids
            .gpu_counts(reported.gpu.index)
            .map(|(code, _)| code)
            .collect();
        let lasting: Vec<u32> = sample.conditions.iter().filter_map(code_of).collect();
        codes.extend(&lasting);
        codes.sort_unstable();
        codes.dedup();
        let states = codes.iter();
        let states = states.map(|code| (code.to_string(), lasting.contains(code)));
        family.add_states(&reported.labels, "code", states);
    }
    let help = "Xids that the driver reported since the server was started.";
    let mut family = page.start_family("gpumon_gpu_xid_errors_total", Counter, help);
    for reported in scrape
        .gpus
        .iter()
        .filter(|_| !scrape.known.is_from_recording())
    {
        for (code, count) in scrape.known.xids.gpu_counts(reported.gpu.index) {
            family.add_series(
                &reported.labels,
                &[("code", &code.to_string())],
                Some(count as f64),
            );
        }
    }
}

fn gpu_up_value(sample: &GpuSample) -> f64 {
    to_flag(matches!(sample.health, Health::Ok | Health::Asleep { .. }))
}

fn seconds_since(scrape: &Scrape<'_>, at_ms: u64) -> f64 {
    scrape.now_ms.saturating_sub(at_ms) as f64 / 1000.0
}
