//! Checks of Intel's drivers for `gpumon doctor`, and copies of their files for bug reports.

use std::path::Path;

use super::{device::is_integrated, errors::DRIVER_NAMES};
use crate::{
    model::Vendor,
    vendor::{
        DriverFinding,
        drm::{self, Binding, Card, Recorder, check_sensors},
    },
};

/// The kernel drivers for Intel's GPUs. Intel's accelerators have other PCI classes and are not
/// supported.
pub(crate) static BINDING: Binding = Binding {
    vendor: Vendor::Intel,
    vendor_id: "0x8086",
    classes: &["0x03"],
    drivers: &DRIVER_NAMES,
    old_driver: None,
    integrated: Some(":00:02.0"),
};

/// Returns the cards of Intel's drivers, excluding virtual functions, which are parts of a card for
/// virtual machines.
pub(crate) fn find_cards(sys_root: &Path) -> Vec<Card> {
    let mut cards = drm::find_cards(sys_root, &DRIVER_NAMES);
    cards.retain(|card| !card.device.folder().join("physfn").exists());
    cards
}

/// Checks a card's sensors. Integrated GPUs are skipped because they have no sensors.
pub(crate) fn check_card(card: &Card) -> Vec<DriverFinding> {
    let missing = (!is_integrated(card)).then(|| check_sensors(card, "update the kernel"));
    missing.flatten().into_iter().collect()
}

/// The folders and files of an engine with the `xe` driver. They can be read only while the card is
/// awake.
const XE_FILES: [(&str, &[&str]); 3] = [
    (
        "freq0",
        &[
            "act_freq", "cur_freq", "rp0_freq", "rpn_freq", "min_freq", "max_freq",
        ],
    ),
    ("freq0/throttle", &["status", "reasons", "reason_*"]),
    ("gtidle", &["name", "idle_status", "idle_residency_ms"]),
];

/// The files of an engine with the `i915` driver. They can be read only while the card is awake.
const I915_FILES: [&str; 3] = ["rps_*", "rc6_*", "throttle_reason_*"];

pub(crate) fn copy_card_files(recorder: &Recorder<'_>, card: &Card) {
    let folders = recorder.copy_card(card);
    if card.is_asleep() {
        return;
    }
    recorder.copy(&folders.card.join("gt/gt0"), &I915_FILES);
    let engine = folders.device.join("tile0/gt0");
    for (folder, names) in XE_FILES {
        recorder.copy(&engine.join(folder), names);
    }
}
