//! The metrics of readings of GPUs, MIG devices and the host. Most are named in the field catalog.

use gpumon_probe::model::{
    NvLink, RecoveryAction, ThrottleReason,
    fields::{BOARD_METRICS, DETAIL_METRICS, GPU_FIELDS, HOST_FIELDS, Metric},
};

use super::{
    scrape::{GpuScrape, Scrape, json_name, to_flag, to_float},
    text::{
        Page,
        SeriesKind::{self, Counter, Gauge},
    },
};

pub(super) fn write_gpu_metrics(page: &mut Page, scrape: &Scrape<'_>) {
    for field in GPU_FIELDS {
        let Some(name) = field.prometheus else {
            continue;
        };
        scrape.add_series_per_gpu(page, name, field.kind.into(), field.help, |reported| {
            reported
                .readings
                .and_then(|gpu| field.access.value(gpu))
                .map(|value| field.unit.to_base_unit(value))
        });
    }
    scrape.add_series_per_gpu(
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
    write_limit_times(page, scrape);
}

/// Writes the time in which each cause limited each GPU. These counters of the server also remain
/// while a GPU does not respond.
fn write_limit_times(page: &mut Page, scrape: &Scrape<'_>) {
    if scrape.known.is_from_recording() {
        return;
    }
    let help = "Time in which this cause limited the GPU since the server was started.";
    let mut family = page.start_family("gpumon_gpu_limited_seconds_total", Counter, help);
    for reported in &scrape.gpus {
        for (cause, seconds) in scrape.known.limit_times.gpu_seconds(reported.gpu.index) {
            family.add_series(&reported.labels, &[("cause", cause.name())], Some(seconds));
        }
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

// Metrics with several series per GPU: one for each recovery action, memory location or link.

/// A metric with a series for each link: its name, kind, help text, and a function that returns a
/// link's value.
type LinkMetric = (
    &'static str,
    SeriesKind,
    &'static str,
    fn(&NvLink) -> Option<f64>,
);

/// The metrics of links. An HGX board has 18 links, so each metric has many series per GPU.
const LINK_METRICS: [LinkMetric; 4] = [
    (
        "gpumon_nvlink_up",
        Gauge,
        "Whether the NVLink is active.",
        |link| link.active.value().map(|is| to_flag(*is)),
    ),
    (
        "gpumon_nvlink_transmit_bytes_total",
        Counter,
        "Bytes transmitted over the NVLink.",
        |link| to_float(&link.tx_bytes_total),
    ),
    (
        "gpumon_nvlink_receive_bytes_total",
        Counter,
        "Bytes received over the NVLink.",
        |link| to_float(&link.rx_bytes_total),
    ),
    (
        "gpumon_nvlink_errors_total",
        Counter,
        "NVLink errors of all kinds.",
        |link| to_float(&link.errors_total),
    ),
];

pub(super) fn write_detail_metrics(page: &mut Page, scrape: &Scrape<'_>) {
    let help = "ECC errors by location, since the driver was loaded (volatile) or over the \
                lifetime of the GPU (aggregate).";
    let mut family = page.start_family("gpumon_gpu_ecc_location_errors_total", Counter, help);
    for (reported, details) in scrape.gpus_with_details() {
        let places = [
            ("volatile", &details.ecc.volatile_by_location),
            ("aggregate", &details.ecc.aggregate_by_location),
        ];
        for (counter, places) in places {
            for place in places.value().into_iter().flatten() {
                let location = ("location", place.location.as_str());
                let totals = [
                    ("corrected", place.corrected_total),
                    ("uncorrected", place.uncorrected_total),
                ];
                for (error, total) in totals {
                    let labels = [location, ("counter", counter), ("error", error)];
                    family.add_series(&reported.labels, &labels, Some(total as f64));
                }
            }
        }
    }
    let help = "1 while the driver requests this recovery action, 0 otherwise.";
    let mut family = page.start_family("gpumon_gpu_recovery_needed", Gauge, help);
    for (reported, details) in scrape.gpus_with_details() {
        if let Some(needed) = details.recovery_action.value() {
            let actions = RecoveryAction::ALL[1..].iter();
            let states = actions.map(|action| (json_name(action), needed == action));
            family.add_states(&reported.labels, "action", states);
        }
    }
}

pub(super) fn write_link_metrics(page: &mut Page, scrape: &Scrape<'_>) {
    for (name, kind, help, read) in LINK_METRICS {
        let mut family = page.start_family(name, kind, help);
        for (reported, details) in scrape.gpus_with_details() {
            for link in details.nvlinks.value().into_iter().flatten() {
                let number = link.link.to_string();
                family.add_series(&reported.labels, &[("link", &number)], read(link));
            }
        }
    }
}
