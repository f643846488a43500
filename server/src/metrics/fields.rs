//! The metrics that have a name in the catalogue of fields: of GPUs, MIG devices, and the host.

use gpumon_probe::model::{
    ThrottleReason,
    fields::{BOARD_METRICS, DETAIL_METRICS, GPU_FIELDS, HOST_FIELDS, Metric},
};

use super::{
    scrape::{Scrape, Told, word},
    text::{Kind::Gauge, Page},
};

pub(super) fn gpu(page: &mut Page, scrape: &Scrape<'_>) {
    for field in GPU_FIELDS {
        let Some(name) = field.prometheus else {
            continue;
        };
        scrape.by_gpu(page, name, field.kind.into(), field.help, |told| {
            told.readings
                .and_then(|gpu| field.access.value(gpu))
                .map(|value| field.unit.base(value))
        });
    }
    scrape.by_gpu(
        page,
        "gpumon_gpu_processes",
        Gauge,
        "Number of processes on the GPU.",
        |told| told.readings?.process_count().map(f64::from),
    );
    let help = "1 while the clocks are throttled for this reason, 0 otherwise.";
    let mut throttled = page.family("gpumon_gpu_throttled", Gauge, help);
    for told in &scrape.gpus {
        let Some(reasons) = told.readings.and_then(|gpu| gpu.throttle_reasons.value()) else {
            continue;
        };
        let states = ThrottleReason::of_vendor(told.gpu.vendor)
            .map(|reason| (word(&reason), reasons.contains(&reason)));
        throttled.add_states(&told.labels, "reason", states);
    }
}

/// Writes the metrics that rarely or never change.
pub(super) fn slow(page: &mut Page, scrape: &Scrape<'_>) {
    families(page, scrape, DETAIL_METRICS, |told| told.details);
    families(page, scrape, BOARD_METRICS, |told| {
        told.readings.map(|_| &told.gpu.board)
    });
}

/// Writes metrics with the same name as one family.
fn families<S>(
    page: &mut Page,
    scrape: &Scrape<'_>,
    metrics: &[Metric<S>],
    of: impl for<'a> Fn(&'a Told<'_>) -> Option<&'a S>,
) {
    for alike in metrics.chunk_by(|one, other| one.prometheus == other.prometheus) {
        let Metric {
            prometheus: Some(name),
            kind,
            help,
            ..
        } = alike[0]
        else {
            continue;
        };
        let mut family = page.family(name, kind.into(), help);
        for told in &scrape.gpus {
            let Some(subject) = of(told) else { continue };
            for metric in alike {
                let value = (metric.read)(subject).map(|value| metric.unit.base(value));
                family.add(&told.labels, metric.labels, value);
            }
        }
    }
}

pub(super) fn mig(page: &mut Page, scrape: &Scrape<'_>) {
    for field in GPU_FIELDS {
        let (Some(name), Some(access)) = (field.prometheus_mig, field.mig) else {
            continue;
        };
        let mut family = page.family(name, field.kind.into(), field.help);
        for told in &scrape.gpus {
            let devices = told.readings.and_then(|gpu| gpu.mig_devices.value());
            for mig in devices.into_iter().flatten() {
                let labels = [
                    ("mig_uuid", mig.uuid.as_str()),
                    ("profile", told.profile(mig)),
                ];
                family.add(
                    &told.labels,
                    &labels,
                    access.value(mig).map(|value| field.unit.base(value)),
                );
            }
        }
    }
}

pub(super) fn host(page: &mut Page, scrape: &Scrape<'_>) {
    for field in HOST_FIELDS {
        let Some(name) = field.prometheus else {
            continue;
        };
        let value = scrape
            .sample
            .and_then(|sample| field.access.value(&sample.host));
        let value = value.map(|value| field.unit.base(value));
        page.add_single(name, field.kind.into(), field.help, value);
    }
}
