//! Checks of Intel's drivers for `gpumon doctor`.

use std::path::Path;

use super::{device::is_integrated, errors::DRIVER_NAMES};
use crate::{
    model::Vendor,
    vendor::{
        DriverFinding,
        drm::{self, Binding, Card, check_sensors},
    },
};

/// The kernel drivers for Intel's GPUs. Intel's accelerators have other PCI classes and are not
/// supported.
pub(in crate::vendor) static BINDING: Binding = Binding {
    vendor: Vendor::Intel,
    vendor_id: "0x8086",
    classes: &["0x03"],
    drivers: &DRIVER_NAMES,
    old_driver: None,
    integrated: Some(":00:02.0"),
};

/// Returns the cards of Intel's drivers, excluding virtual functions, which are parts of a card for
/// virtual machines.
pub(in crate::vendor) fn find_cards(sys_root: &Path) -> Vec<Card> {
    let mut cards = drm::find_cards(sys_root, &DRIVER_NAMES);
    cards.retain(|card| !card.device.folder().join("physfn").exists());
    cards
}

/// Checks a card's sensors. Integrated GPUs are skipped because they have no sensors.
pub(in crate::vendor) fn check_card(card: &Card) -> Vec<DriverFinding> {
    let missing = (!is_integrated(card)).then(|| check_sensors(card, "update the kernel"));
    missing.flatten().into_iter().collect()
}
