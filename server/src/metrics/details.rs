//! Slowly changing metrics of a GPU with many series: one series for each action, memory location
//! or link.

use gpumon_probe::model::{NvLink, RecoveryAction};

use super::{
    scrape::{Scrape, json_name, to_flag, to_float},
    text::{
        Page,
        SeriesKind::{self, Counter, Gauge},
    },
};

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
