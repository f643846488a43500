//! The presence and health of GPUs and of the collector. A state has a series of 0 or 1 for each
//! possible value.

use gpumon_probe::model::{Condition, ConditionKind, GpuSample, Health, Vendor};

use super::{
    scrape::{Scrape, text, word, yes},
    text::{
        Kind::{Counter, Gauge},
        Labels, Page,
    },
};
use crate::{frame::CollectorState, hub::VERSION};

pub(super) fn write(page: &mut Page, scrape: &Scrape<'_>) {
    let none = Labels::default();
    page.family(
        "gpumon_build_info",
        Gauge,
        "Version of gpumon, in the label version; always 1.",
    )
    .add(&none, &[("version", VERSION)], Some(1.0));
    let state = scrape.known.collector.state;
    let is_running = Some(yes(state == CollectorState::Running));
    let help = "Whether the collector process is running.";
    page.add_single("gpumon_collector_up", Gauge, help, is_running);
    let mut states = page.family(
        "gpumon_collector_state",
        Gauge,
        "1 for the state of the collector process, 0 for others.",
    );
    let known = CollectorState::ALL.map(|known| (word(&known), state == known));
    states.add_states(&none, "state", known);
    let newest = scrape.known.sample.as_ref();
    let age = newest.map(|sample| seconds_since(scrape, sample.at_ms));
    let help = "Time since the newest sample.";
    page.add_single("gpumon_sample_age_seconds", Gauge, help, age);
    if let Some(refused) = &scrape.known.refused {
        let help = "Wrong tokens and passwords that were refused since the server was started.";
        let mut family = page.family("gpumon_refused_credentials_total", Counter, help);
        for (kind, count) in refused.by_kind() {
            family.add(&none, &[("kind", &kind.to_string())], Some(count as f64));
        }
    }
    infos(page, scrape);
    ups(page, scrape);
    conditions(page, scrape);
    xids(page, scrape);
}

fn infos(page: &mut Page, scrape: &Scrape<'_>) {
    let platform = scrape
        .known
        .inventory
        .as_ref()
        .map(|inventory| &inventory.platform);
    let source = |vendor: Vendor| match platform {
        Some(platform) if vendor == Vendor::Nvidia || platform.is_simulated => {
            word(&platform.source())
        }
        // The drivers of other vendors have no library, so their source is the vendor's name.
        Some(_) => word(&vendor),
        None => String::new(),
    };
    let mut info = page.family(
        "gpumon_gpu_info",
        Gauge,
        "Name, driver and PCI bus ID of the GPU, and the data source (nvml, the vendor of another \
         driver, or simulated); always 1.",
    );
    for told in &scrape.gpus {
        let source = source(told.gpu.vendor);
        let driver = platform.and_then(|platform| platform.find_driver(told.gpu.vendor));
        let rest = [
            ("name", text(&told.gpu.name)),
            ("driver", driver.map_or("", |driver| text(&driver.version))),
            ("pci_bus_id", text(&told.gpu.pci_bus_id)),
            ("source", &source),
        ];
        info.add(&told.labels, &rest, Some(1.0));
    }
}

fn ups(page: &mut Page, scrape: &Scrape<'_>) {
    let up = "Whether the GPU responds: 0 if it is lost, not responding or cannot be read.";
    scrape.by_gpu(page, "gpumon_gpu_up", Gauge, up, |told| {
        told.sample.map(is_up)
    });
    let age = "Time since the last response of the GPU.";
    scrape.by_gpu(page, "gpumon_gpu_sample_age_seconds", Gauge, age, |told| {
        told.sample
            .map(|sample| seconds_since(scrape, sample.at_ms))
    });
    let mut states = page.family(
        "gpumon_gpu_state",
        Gauge,
        "1 for the state of the GPU, 0 for others.",
    );
    for (told, sample) in scrape.with_samples() {
        let known = Health::TAGS.iter();
        let known = known.map(|state| (state, sample.health.word() == *state));
        states.add_states(&told.labels, "state", known);
    }
}

fn conditions(page: &mut Page, scrape: &Scrape<'_>) {
    let mut family = page.family(
        "gpumon_condition",
        Gauge,
        "1 while the condition lasts, 0 otherwise.",
    );
    for (told, sample) in scrape.with_samples() {
        let lasts = |kind: &str| {
            let mut lasting = sample.conditions.iter();
            lasting.any(|condition| condition.kind.tag() == Some(kind))
        };
        let kinds = ConditionKind::TAGS.iter().map(|kind| (kind, lasts(kind)));
        family.add_states(&told.labels, "condition", kinds);
    }
    let help =
        "Severity of a condition while it lasts: 1 for a notice, 2 for a warning, 3 if critical.";
    let mut family = page.family("gpumon_condition_severity", Gauge, help);
    for (told, sample) in scrape.with_samples() {
        for kind in ConditionKind::TAGS {
            let same = sample
                .conditions
                .iter()
                .filter(|condition| condition.kind.tag() == Some(kind));
            let worst = same.map(|condition| condition.severity.rank()).max();
            family.add(&told.labels, &[("condition", kind)], worst.map(f64::from));
        }
    }
}

/// Writes Xids. All codes since the server's start have a series, so that the end of an Xid is
/// visible.
fn xids(page: &mut Page, scrape: &Scrape<'_>) {
    let code_of = |condition: &Condition| match condition.kind {
        ConditionKind::Xid { code, .. } => Some(code),
        _ => None,
    };
    let mut family = page.family(
        "gpumon_gpu_xid",
        Gauge,
        "1 while this Xid lasts, 0 once it is over.",
    );
    for (told, sample) in scrape.with_samples() {
        let mut codes: Vec<u32> = scrape
            .known
            .xids
            .of_gpu(told.gpu.index)
            .map(|(code, _)| code)
            .collect();
        let lasting: Vec<u32> = sample.conditions.iter().filter_map(code_of).collect();
        codes.extend(&lasting);
        codes.sort_unstable();
        codes.dedup();
        let states = codes.iter();
        let states = states.map(|code| (code.to_string(), lasting.contains(code)));
        family.add_states(&told.labels, "code", states);
    }
    let help = "Xids that the driver reported since the server was started.";
    let mut family = page.family("gpumon_gpu_xid_errors_total", Counter, help);
    for told in scrape.gpus.iter().filter(|_| !scrape.known.is_played()) {
        for (code, count) in scrape.known.xids.of_gpu(told.gpu.index) {
            family.add(
                &told.labels,
                &[("code", &code.to_string())],
                Some(count as f64),
            );
        }
    }
}

fn is_up(sample: &GpuSample) -> f64 {
    yes(matches!(sample.health, Health::Ok | Health::Asleep { .. }))
}

fn seconds_since(scrape: &Scrape<'_>, at_ms: u64) -> f64 {
    scrape.now_ms.saturating_sub(at_ms) as f64 / 1000.0
}
