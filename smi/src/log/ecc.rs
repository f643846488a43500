//! Memory errors. The counters depend on the generation of the board.

use gpumon_probe::vendor::nvml::query::Query as Q;

use super::{
    cursor::Cursor,
    format::{ABSENT, count, enabled, yes_no},
    item::{Item, SAME, group, number, value},
    sections::Section,
};

/// The encryption mode, the ECC mode and the error counters.
pub(super) static ITEMS: &[Item] = &[
    group("DRAM Encryption Mode", SAME).holds(&[
        number(
            "Current",
            "current_dram_encryption",
            Q::DramEncryptionMode,
            0,
            enabled,
        ),
        number(
            "Pending",
            "pending_dram_encryption",
            Q::DramEncryptionMode,
            1,
            enabled,
        ),
    ]),
    group("ECC Mode", SAME).of(Section::ECC).holds(&[
        number("Current", "current_ecc", Q::EccMode, 0, enabled),
        number("Pending", "pending_ecc", Q::EccMode, 1, enabled),
    ]),
    group("ECC Errors", SAME).of(Section::ECC).holds(&[
        group("Volatile", SAME).about(&[VOLATILE]).holds(COUNTERS),
        group("Aggregate", SAME).about(&[AGGREGATE]).holds(COUNTERS),
        group("Aggregate Uncorrectable SRAM Sources", SAME)
            .when(tells_sources)
            .holds(&[
                sram_errors("SRAM L2", SAME, &[6]),
                sram_errors("SRAM SM", SAME, &[7]),
                sram_errors("SRAM Microcontroller", SAME, &[9]),
                sram_errors("SRAM PCIE", SAME, &[8]),
                sram_errors("SRAM Other", SAME, &[10]),
            ]),
        number("Channel Repair Pending", SAME, Q::RepairStatus, 0, yes_no).when(tells_sources),
        number("TPC Repair Pending", SAME, Q::RepairStatus, 1, yes_no).when(tells_sources),
        number(
            "Unrepairable Memory",
            SAME,
            Q::UnrepairableMemory,
            0,
            yes_no,
        )
        .when(tells_sources),
    ]),
];

/// The counters of an `nvmlEccCounterType_t` in `about`. nvidia-smi pads the headings of older
/// boards with spaces.
static COUNTERS: &[Item] = &[
    group("Single Bit            ", SAME)
        .about(&[CORRECTED])
        .when(tells_locations)
        .holds(LOCATIONS),
    group("Double Bit            ", SAME)
        .about(&[UNCORRECTED])
        .when(tells_locations)
        .holds(LOCATIONS),
    value("SRAM Correctable", SAME, |at| {
        if tells_sources(at) {
            format_sram_errors(at, if at.nth(0) == VOLATILE { 5 } else { 2 }, count)
        } else {
            count_errors(at, CORRECTED as u32, SRAM as u32)
        }
    })
    .when(|at| !tells_locations(at)),
    errors_at("SRAM Uncorrectable", SAME, &[UNCORRECTED, SRAM])
        .when(|at| !tells_locations(at) && !tells_sources(at)),
    value("SRAM Uncorrectable Parity", SAME, |at| {
        format_sram_errors(at, if at.nth(0) == VOLATILE { 3 } else { 0 }, count)
    })
    .when(tells_sources),
    value(
        "SRAM Uncorrectable SEC-DED",
        "sram_uncorrectable_secded",
        |at| format_sram_errors(at, if at.nth(0) == VOLATILE { 4 } else { 1 }, count),
    )
    .when(tells_sources),
    errors_at("DRAM Correctable", SAME, &[CORRECTED, DRAM]).when(|at| !tells_locations(at)),
    errors_at("DRAM Uncorrectable", SAME, &[UNCORRECTED, DRAM]).when(|at| !tells_locations(at)),
    value("SRAM Threshold Exceeded", SAME, |at| {
        format_sram_errors(at, 11, yes_no)
    })
    .when(|at| tells_sources(at) && at.nth(0) == AGGREGATE),
];

/// The counters by location, for the counter type and the `nvmlMemoryErrorType_t` in `about`.
static LOCATIONS: &[Item] = &[
    errors_at("Device Memory", SAME, &[2]),
    errors_at("Register File", SAME, &[3]),
    errors_at("L1 Cache", SAME, &[0]),
    errors_at("L2 Cache", SAME, &[1]),
    errors_at("Texture Memory", SAME, &[4]),
    errors_at("Texture Shared", "texture_shm", &[5]),
    errors_at("CBU", SAME, &[6]),
    value("Total", SAME, |at| {
        at.format(Q::TotalEccErrors(at.argument(1), at.argument(0)), 0, count)
    }),
];

const VOLATILE: i128 = 0;
const AGGREGATE: i128 = 1;
const CORRECTED: i128 = 0;
const UNCORRECTED: i128 = 1;
/// The value of NVML's `NVML_MEMORY_LOCATION_DRAM`.
const DRAM: i128 = 2;
/// The value of NVML's `NVML_MEMORY_LOCATION_SRAM`.
const SRAM: i128 = 7;
/// The value of NVML's `NVML_DEVICE_ARCH_TURING`.
const TURING: i128 = 6;

/// Defines a line with the errors at an `nvmlMemoryLocation_t`. `about` has the error type and the
/// location; the group has the counter type.
const fn errors_at(title: &'static str, tag: &'static str, about: &'static [i128]) -> Item {
    value(title, tag, |at| {
        count_errors(at, at.argument(1), at.argument(2))
    })
    .about(about)
}

fn count_errors(at: &Cursor<'_>, kind: u32, location: u32) -> String {
    if_enabled(at, |at| {
        at.format(Q::MemoryErrors(kind, at.argument(0), location), 0, count)
    })
}

/// Defines a line with a number of [`Q::SramEccErrors`].
const fn sram_errors(title: &'static str, tag: &'static str, place: &'static [i128]) -> Item {
    value(title, tag, |at| {
        format_sram_errors(at, at.nth(0) as usize, count)
    })
    .about(place)
}

fn format_sram_errors(at: &Cursor<'_>, place: usize, format: fn(i128) -> String) -> String {
    if_enabled(at, |at| at.format(Q::SramEccErrors, place, format))
}

/// Returns the text if ECC is enabled. Otherwise nvidia-smi prints no counters, even if the driver
/// answers zeros, as for a `GeForce` RTX 4080 SUPER, which has no ECC. This was verified with
/// nvidia-smi 580 on an H100, with modified answers of the driver.
fn if_enabled(at: &Cursor<'_>, text: impl Fn(&Cursor<'_>) -> String) -> String {
    match at.number(Q::EccMode, 0) {
        Ok(1) => text(at),
        Ok(_) => ABSENT.to_owned(),
        Err(absent) => absent,
    }
}

/// Returns `true` for boards before Turing, which count errors by cache.
fn tells_locations(at: &Cursor<'_>) -> bool {
    at.number(Q::Architecture, 0)
        .is_ok_and(|architecture| architecture < TURING)
}

/// Returns `true` for boards after Turing, which distinguish the sources of SRAM errors.
fn tells_sources(at: &Cursor<'_>) -> bool {
    at.number(Q::Architecture, 0)
        .map_or(true, |architecture| architecture > TURING)
}
