//! The MIG mode and the MIG devices of a GPU.

use gpumon_probe::vendor::nvml::query::{Code, Query as Q, Subject, Value};

use super::{
    cursor::{Cursor, Form},
    format::{count, enabled, full_mib, mib},
    item::{Item, Layout, List, SAME, group, list, number, of_part, value},
};

/// The MIG mode, and a block for each MIG device.
pub(super) static ITEMS: &[Item] = &[
    group("MIG Mode", SAME).holds(&[
        number("Current", "current_mig", Q::MigMode, 0, enabled),
        number("Pending", "pending_mig", Q::MigMode, 1, enabled),
    ]),
    list("MIG Device", "mig_devices", &DEVICES),
];

/// The list of MIG devices. A row has the index of the device.
static DEVICES: List = List {
    rows: |at| Ok(indices(at)),
    tag: "mig_device",
    items: DEVICE,
    layout: Layout::Headed,
};

static DEVICE: &[Item] = &[
    value("Index", SAME, |at| count(at.nth(0))),
    of_part("GPU Instance ID", SAME, Q::MigInstance, 0, count),
    of_part("Compute Instance ID", SAME, Q::MigInstance, 1, count),
    group("Device Attributes", SAME).holds(&[group("Shared", SAME).holds(&[
        attribute("Multiprocessor count", SAME, 0),
        attribute("Copy Engine count", SAME, 1),
        attribute("Encoder count", SAME, 3),
        attribute("Decoder count", SAME, 2),
        attribute("OFA count", SAME, 5),
        attribute("JPG count", SAME, 4),
    ])]),
    group("ECC Errors", "ecc_error_count")
        .when(counts_errors)
        .holds(&[group("Volatile", "volatile_count").holds(&[of_part(
            "SRAM Uncorrectable",
            SAME,
            SRAM_ERRORS,
            0,
            count,
        )])]),
    group("Shared FB Memory Usage", "fb_memory_usage").holds(&[
        of_part("Total", SAME, Q::MemoryInfo, 0, mib),
        of_part("Reserved", SAME, Q::MemoryInfo, 1, mib),
        of_part("Used", SAME, Q::MemoryInfo, 3, mib),
        of_part("Free", SAME, Q::MemoryInfo, 2, mib),
    ]),
    group("Shared BAR1 Memory", "bar1_memory_usage").holds(&[
        of_part("Total", SAME, Q::Bar1MemoryInfo, 0, mib),
        of_part("Used", SAME, Q::Bar1MemoryInfo, 2, full_mib),
        of_part("Free", SAME, Q::Bar1MemoryInfo, 1, full_mib),
    ]),
];

/// The query for uncorrected SRAM errors since the driver was loaded.
const SRAM_ERRORS: Q = Q::MemoryErrors(1, 0, 7);

/// Returns the indices of the MIG devices; none if the GPU is not in MIG mode or does not answer.
fn indices(at: &Cursor<'_>) -> Vec<Vec<i128>> {
    if at.number(Q::MigMode, 0) != Ok(1) {
        return Vec::new();
    }
    at.ask(Q::MigDevices)
        .iter()
        .flat_map(Value::numbers)
        .map(|index| vec![*index])
        .collect()
}

const fn attribute(title: &'static str, tag: &'static str, place: usize) -> Item {
    of_part(title, tag, Q::MigAttributes, place, count)
}

/// Returns `true` if error counters are shown. The text leaves them out if the board has none; the
/// XML always has them.
fn counts_errors(at: &Cursor<'_>) -> bool {
    let part = Subject::mig(at.device.gpu, at.argument(0));
    at.form == Form::Xml || at.device.ask(part, SRAM_ERRORS) != Err(Code::NOT_SUPPORTED)
}
