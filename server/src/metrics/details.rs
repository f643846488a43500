//! What changes slowly about a GPU and has as many series as there are actions, memories or links.

use gpumon_probe::model::{EccLocation, GpuDetails, NvLink, Reading, RecoveryAction};

use super::{
    scrape::{Scrape, count, word, yes},
    text::{
        Kind::{self, Counter, Gauge},
        Label, Page,
    },
};

/// One family: its name, what it is, and its series with the labels that tell them apart.
type Family = (
    &'static str,
    Kind,
    &'static str,
    fn(&GpuDetails, &mut Out<'_>),
);

/// Takes in the series of one GPU and family.
type Out<'a> = dyn FnMut(&[Label<'_>], Option<f64>) + 'a;

const FAMILIES: &[Family] = &[
    (
        "gpumon_gpu_ecc_location_errors_total",
        Counter,
        "ECC errors by location, since the driver was loaded (volatile) or over the lifetime of the GPU (aggregate).",
        ecc_locations,
    ),
    (
        "gpumon_gpu_recovery_needed",
        Gauge,
        "1 while the driver requests this recovery action, 0 otherwise.",
        |it, out| {
            let Some(needed) = it.recovery_action.value() else {
                return;
            };
            for action in &RecoveryAction::ALL[1..] {
                out(&[("action", &word(action))], Some(yes(needed == action)));
            }
        },
    ),
];

/// Many for each GPU: an HGX board has 18 links.
const LINKS: &[Family] = &[
    (
        "gpumon_nvlink_up",
        Gauge,
        "Whether the NVLink is active.",
        |it, out| {
            links(it, out, |link| link.active.value().map(|is| yes(*is)));
        },
    ),
    (
        "gpumon_nvlink_transmit_bytes_total",
        Counter,
        "Bytes transmitted over the NVLink.",
        |it, out| {
            links(it, out, |link| count(&link.tx_bytes_total));
        },
    ),
    (
        "gpumon_nvlink_receive_bytes_total",
        Counter,
        "Bytes received over the NVLink.",
        |it, out| {
            links(it, out, |link| count(&link.rx_bytes_total));
        },
    ),
    (
        "gpumon_nvlink_errors_total",
        Counter,
        "NVLink errors of all kinds.",
        |it, out| {
            links(it, out, |link| count(&link.errors_total));
        },
    ),
];

pub(super) fn write(page: &mut Page, scrape: &Scrape<'_>) {
    families(page, scrape, FAMILIES);
}

pub(super) fn by_link(page: &mut Page, scrape: &Scrape<'_>) {
    families(page, scrape, LINKS);
}

fn families(page: &mut Page, scrape: &Scrape<'_>, families: &[Family]) {
    for (name, kind, help, read) in families {
        let mut family = page.family(name, *kind, help);
        for told in &scrape.gpus {
            let Some(details) = told.details else {
                continue;
            };
            read(details, &mut |labels, value| {
                family.add(&told.labels, labels, value);
            });
        }
    }
}

fn ecc_locations(it: &GpuDetails, out: &mut Out<'_>) {
    let mut places = |counter, places: &Reading<Vec<EccLocation>>| {
        for place in places.value().into_iter().flatten() {
            let labels = [("location", place.location.as_str()), ("counter", counter)];
            let mut kind = |error, total: u64| {
                out(
                    &[labels[0], labels[1], ("error", error)],
                    Some(total as f64),
                );
            };
            kind("corrected", place.corrected_total);
            kind("uncorrected", place.uncorrected_total);
        }
    };
    places("volatile", &it.ecc.volatile_by_location);
    places("aggregate", &it.ecc.aggregate_by_location);
}

fn links(it: &GpuDetails, out: &mut Out<'_>, read: fn(&NvLink) -> Option<f64>) {
    for link in it.nvlinks.value().into_iter().flatten() {
        out(&[("link", &link.link.to_string())], read(link));
    }
}
