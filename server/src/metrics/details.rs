//! What changes slowly about a GPU: settings, errors, links.

use gpumon_probe::model::{EccCounts, EccLocation, GpuDetails, NvLink, Reading, RecoveryAction};

use super::{
    scrape::{Scrape, count, flag, number, word},
    text::{
        Kind::{self, Counter, Gauge},
        Label, Page,
    },
};

/// One family: its name, what it is, and its series with the labels that tell them apart.
type Family = (&'static str, Kind, &'static str, fn(&GpuDetails, &mut Out<'_>));

/// Takes in the series of one GPU and family.
type Out<'a> = dyn FnMut(&[Label<'_>], Option<f64>) + 'a;

const FAMILIES: &[Family] = &[
    ("gpumon_gpu_persistence_mode", Gauge, "Whether persistence mode is enabled.", |it, out| {
        out(&[], flag(&it.modes.persistence));
    }),
    ("gpumon_gpu_ecc_mode", Gauge, "Whether ECC is enabled.", |it, out| {
        out(&[], it.modes.ecc.value().map(|mode| yes(mode.current)));
    }),
    ("gpumon_gpu_mig_mode", Gauge, "Whether MIG mode is enabled.", |it, out| {
        out(&[], it.modes.mig.value().map(|mode| yes(mode.current)));
    }),
    (
        "gpumon_gpu_throttled_seconds_total",
        Counter,
        "Time in which the clocks were throttled for this reason.",
        throttled,
    ),
    (
        "gpumon_gpu_ecc_errors_total",
        Counter,
        "ECC errors since the driver was loaded (volatile) or over the lifetime of the GPU (aggregate).",
        ecc,
    ),
    (
        "gpumon_gpu_ecc_location_errors_total",
        Counter,
        "ECC errors by location, since the driver was loaded (volatile) or over the lifetime of the GPU (aggregate).",
        ecc_places,
    ),
    ("gpumon_gpu_retired_pages", Gauge, "Retired memory pages by cause.", |it, out| {
        let pages = it.retired_pages.value();
        out(&[("cause", "single_bit")], pages.map(|pages| pages.single_bit.into()));
        out(&[("cause", "double_bit")], pages.map(|pages| pages.double_bit.into()));
    }),
    (
        "gpumon_gpu_retired_pages_pending",
        Gauge,
        "Whether a page retirement is pending until the next GPU reset.",
        |it, out| out(&[], it.retired_pages.value().map(|pages| yes(pages.pending))),
    ),
    ("gpumon_gpu_remapped_rows", Gauge, "Remapped memory rows by cause.", |it, out| {
        let rows = it.remapped_rows.value();
        out(&[("cause", "correctable")], rows.map(|rows| rows.correctable.into()));
        out(&[("cause", "uncorrectable")], rows.map(|rows| rows.uncorrectable.into()));
    }),
    (
        "gpumon_gpu_remapped_rows_pending",
        Gauge,
        "Whether a row remapping is pending until the next GPU reset.",
        |it, out| {
            out(&[], it.remapped_rows.value().map(|rows| yes(rows.pending)));
        },
    ),
    ("gpumon_gpu_remapped_rows_failed", Gauge, "Whether a row remapping has failed.", |it, out| {
        out(&[], it.remapped_rows.value().map(|rows| yes(rows.failed)));
    }),
    ("gpumon_gpu_recovery_needed", Gauge, "1 while the driver requests this recovery action.", |it, out| {
        if let Some(action) = it.recovery_action.value().filter(|action| **action != RecoveryAction::None) {
            out(&[("action", &word(action))], Some(1.0));
        }
    }),
    ("gpumon_gpu_bar1_total_bytes", Gauge, "Size of BAR1, through which the host maps device memory.", |it, out| {
        out(&[], it.bar1.value().map(|bar1| bar1.total_bytes as f64));
    }),
    ("gpumon_gpu_bar1_used_bytes", Gauge, "BAR1 memory in use.", |it, out| {
        out(&[], it.bar1.value().map(|bar1| bar1.used_bytes as f64));
    }),
    ("gpumon_gpu_pcie_replays_total", Counter, "PCIe replays.", |it, out| {
        out(&[], count(&it.pcie_replays_total));
    }),
    ("gpumon_gpu_nvlink_up", Gauge, "Whether the NVLink is active.", |it, out| {
        links(it, out, |link| flag(&link.active));
    }),
    ("gpumon_gpu_nvlink_transmit_bytes_total", Counter, "Bytes transmitted over the NVLink.", |it, out| {
        links(it, out, |link| count(&link.tx_bytes_total));
    }),
    ("gpumon_gpu_nvlink_receive_bytes_total", Counter, "Bytes received over the NVLink.", |it, out| {
        links(it, out, |link| count(&link.rx_bytes_total));
    }),
    ("gpumon_gpu_nvlink_errors_total", Counter, "NVLink errors of all kinds.", |it, out| {
        links(it, out, |link| count(&link.errors_total));
    }),
];

pub(super) fn write(page: &mut Page, scrape: &Scrape<'_>) {
    for (name, kind, help, read) in FAMILIES {
        let mut family = page.family(name, *kind, help);
        for told in &scrape.gpus {
            let Some(details) = told.details else { continue };
            read(details, &mut |labels, value| {
                family.add(told.labels().into_iter().chain(labels.iter().copied()), value);
            });
        }
    }
}

fn throttled(it: &GpuDetails, out: &mut Out<'_>) {
    let times = &it.throttled;
    for (reason, seconds) in [
        ("power", &times.power_seconds_total),
        ("thermal", &times.thermal_seconds_total),
        ("sync_boost", &times.sync_boost_seconds_total),
        ("board_limit", &times.board_limit_seconds_total),
        ("low_utilization", &times.low_utilization_seconds_total),
        ("reliability", &times.reliability_seconds_total),
    ] {
        out(&[("reason", reason)], number(seconds));
    }
}

fn ecc(it: &GpuDetails, out: &mut Out<'_>) {
    let mut counts = |counter, counts: &EccCounts| {
        out(&[("counter", counter), ("error", "corrected")], count(&counts.corrected_total));
        out(&[("counter", counter), ("error", "uncorrected")], count(&counts.uncorrected_total));
    };
    counts("volatile", &it.ecc.volatile);
    counts("aggregate", &it.ecc.aggregate);
}

fn ecc_places(it: &GpuDetails, out: &mut Out<'_>) {
    let mut places = |counter, places: &Reading<Vec<EccLocation>>| {
        for place in places.value().into_iter().flatten() {
            let labels = [("location", place.location.as_str()), ("counter", counter)];
            let mut kind = |error, total: u64| out(&[labels[0], labels[1], ("error", error)], Some(total as f64));
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

fn yes(is: bool) -> f64 {
    f64::from(u8::from(is))
}
