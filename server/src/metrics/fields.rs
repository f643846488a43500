//! The metrics that are named in the field catalog: metrics of GPUs, of MIG devices, and of the
//! host.

use gpumon_probe::model::{
    ThrottleReason,
    fields::{BOARD_METRICS, DETAIL_METRICS, GPU_FIELDS, HOST_FIELDS, Metric},
};

use super::{
    scrape::{GpuScrape, Scrape, json_name},
    text::{Page, SeriesKind::Gauge},
};

pub(super) fn write_gpu_metrics(page: &mut Page, scrape: &Scrape<'_>) {
    for field in GPU_FIELDS {
        let Some(name) = field.prometheus else {
            continue;
        };
        scrape.add_by_gpu(page, name, field.kind.into(), field.help, |reported| {
            reported
                .readings
                .and_then(|gpu| field.access.value(gpu))
                .map(|value| field.unit.to_base_unit(value))
        });
    }
    scrape.add_by_gpu(
        page,
        "gpumon_gpu_processes",
        Gauge,
        "Number of processes on the GPU.",
        |reported| reported.readings?.process_count().map(f64::from),
    );
    let help = "1 while the clocks are throttled for this reason, 0 otherwise.";
    let mut throttled = page.start_family("gpumon_gpu_throttled", Gauge, help);
    for reported in &scrape.gpus {
        let Some(reasons) = reported
            .readings
            .and_then(|gpu| gpu.throttle_reasons.value())
        else {
            continue;
        };
        let states = ThrottleReason::for_vendor(reported.gpu.vendor)
            .map(|reason| (json_name(&reason), reasons.contains(&reason)));
        throttled.add_states(&reported.labels, "reason", states);
    }
}

/// Writes the metrics that rarely or never change.
pub(super) fn write_rarely_changing_metrics(page: &mut Page, scrape: &Scrape<'_>) {
    write_families(page, scrape, DETAIL_METRICS, |reported| reported.details);
    write_families(page, scrape, BOARD_METRICS, |reported| {
        reported.readings.map(|_| &reported.gpu.board)
    });
}

/// Writes metrics. Consecutive metrics with the same name form one family.
fn write_families<S>(
    page: &mut Page,
    scrape: &Scrape<'_>,
    metrics: &[Metric<S>],
    of: impl for<'a> Fn(&'a GpuScrape<'_>) -> Option<&'a S>,
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
        let mut family = page.start_family(name, kind.into(), help);
        for reported in &scrape.gpus {
            let Some(subject) = of(reported) else {
                continue;
            };
            for metric in alike {
                let value = (metric.read)(subject).map(|value| metric.unit.to_base_unit(value));
                family.add_series(&reported.labels, metric.labels, value);
            }
        }
    }
}

pub(super) fn write_mig_metrics(page: &mut Page, scrape: &Scrape<'_>) {
    for field in GPU_FIELDS {
        let (Some(name), Some(access)) = (field.prometheus_mig, field.mig) else {
            continue;
        };
        let mut family = page.start_family(name, field.kind.into(), field.help);
        for reported in &scrape.gpus {
            let devices = reported.readings.and_then(|gpu| gpu.mig_devices.value());
            for mig in devices.into_iter().flatten() {
                let labels = [
                    ("mig_uuid", mig.uuid.as_str()),
                    ("profile", reported.find_profile(mig)),
                ];
                family.add_series(
                    &reported.labels,
                    &labels,
                    access
                        .value(mig)
                        .map(|value| field.unit.to_base_unit(value)),
                );
            }
        }
    }
}

pub(super) fn write_host_metrics(page: &mut Page, scrape: &Scrape<'_>) {
    for field in HOST_FIELDS {
        let Some(name) = field.prometheus else {
            continue;
        };
        let value = scrape
            .sample
            .and_then(|sample| field.access.value(&sample.host));
        let value = value.map(|value| field.unit.to_base_unit(value));
        page.add_single_series(name, field.kind.into(), field.help, value);
    }
}
