//! Memory errors: what is counted depends on how old the board is.

use gpumon_probe::vendor::nvml::query::Query;

use super::{
    at::At,
    format::{count, enabled, yes_no},
    item::{Item, group, value},
    sections::Sections,
};

/// Encryption, mode and counters.
pub(super) static ITEMS: &[Item] = &[
    group(
        "DRAM Encryption Mode",
        "dram_encryption_mode",
        &[
            value("Current", "current_dram_encryption", |at| at.format(Query::DramEncryptionMode, 0, enabled)),
            value("Pending", "pending_dram_encryption", |at| at.format(Query::DramEncryptionMode, 1, enabled)),
        ],
    ),
    group(
        "ECC Mode",
        "ecc_mode",
        &[
            value("Current", "current_ecc", |at| at.format(Query::EccMode, 0, enabled)),
            value("Pending", "pending_ecc", |at| at.format(Query::EccMode, 1, enabled)),
        ],
    )
    .of(Sections::ECC),
    group(
        "ECC Errors",
        "ecc_errors",
        &[
            group("Volatile", "volatile", COUNTERS).about(&[VOLATILE]),
            group("Aggregate", "aggregate", COUNTERS).about(&[AGGREGATE]),
            group(
                "Aggregate Uncorrectable SRAM Sources",
                "aggregate_uncorrectable_sram_sources",
                &[
                    value("SRAM L2", "sram_l2", |at| at.format(Query::SramEccErrors, 6, count)),
                    value("SRAM SM", "sram_sm", |at| at.format(Query::SramEccErrors, 7, count)),
                    value("SRAM Microcontroller", "sram_microcontroller", |at| {
                        at.format(Query::SramEccErrors, 9, count)
                    }),
                    value("SRAM PCIE", "sram_pcie", |at| at.format(Query::SramEccErrors, 8, count)),
                    value("SRAM Other", "sram_other", |at| at.format(Query::SramEccErrors, 10, count)),
                ],
            )
            .when(tells_sources),
            value("Channel Repair Pending", "channel_repair_pending", |at| at.format(Query::RepairStatus, 0, yes_no))
                .when(tells_sources),
            value("TPC Repair Pending", "tpc_repair_pending", |at| at.format(Query::RepairStatus, 1, yes_no))
                .when(tells_sources),
            value("Unrepairable Memory", "unrepairable_memory", |at| at.format(Query::UnrepairableMemory, 0, yes_no))
                .when(tells_sources),
        ],
    )
    .of(Sections::ECC),
];

/// `about` is the `nvmlEccCounterType_t`. The headings of the old form are padded.
static COUNTERS: &[Item] = &[
    group("Single Bit            ", "single_bit", LOCATIONS).about(&[CORRECTED]).when(tells_locations),
    group("Double Bit            ", "double_bit", LOCATIONS).about(&[UNCORRECTED]).when(tells_locations),
    value("SRAM Correctable", "sram_correctable", |at| errors(at, CORRECTED, SRAM)).when(|at| !tells_locations(at)),
    value("SRAM Uncorrectable", "sram_uncorrectable", |at| errors(at, UNCORRECTED, SRAM))
        .when(|at| !tells_locations(at) && !tells_sources(at)),
    value("SRAM Uncorrectable Parity", "sram_uncorrectable_parity", |at| {
        at.format(Query::SramEccErrors, if at.nth(0) == VOLATILE { 3 } else { 0 }, count)
    })
    .when(tells_sources),
    value("SRAM Uncorrectable SEC-DED", "sram_uncorrectable_secded", |at| {
        at.format(Query::SramEccErrors, if at.nth(0) == VOLATILE { 4 } else { 1 }, count)
    })
    .when(tells_sources),
    value("DRAM Correctable", "dram_correctable", |at| errors(at, CORRECTED, DRAM)).when(|at| !tells_locations(at)),
    value("DRAM Uncorrectable", "dram_uncorrectable", |at| errors(at, UNCORRECTED, DRAM))
        .when(|at| !tells_locations(at)),
    value("SRAM Threshold Exceeded", "sram_threshold_exceeded", |at| at.format(Query::SramEccErrors, 11, yes_no))
        .when(|at| tells_sources(at) && at.nth(0) == AGGREGATE),
];

/// `about` is the counter and the `nvmlMemoryErrorType_t`.
static LOCATIONS: &[Item] = &[
    value("Device Memory", "device_memory", |at| errors(at, at.nth(1), 2)),
    value("Register File", "register_file", |at| errors(at, at.nth(1), 3)),
    value("L1 Cache", "l1_cache", |at| errors(at, at.nth(1), 0)),
    value("L2 Cache", "l2_cache", |at| errors(at, at.nth(1), 1)),
    value("Texture Memory", "texture_memory", |at| errors(at, at.nth(1), 4)),
    value("Texture Shared", "texture_shm", |at| errors(at, at.nth(1), 5)),
    value("CBU", "cbu", |at| errors(at, at.nth(1), 6)),
    value("Total", "total", |at| at.format(Query::TotalEccErrors(at.argument(1), at.argument(0)), 0, count)),
];

const VOLATILE: i128 = 0;
const AGGREGATE: i128 = 1;
const CORRECTED: i128 = 0;
const UNCORRECTED: i128 = 1;
/// `NVML_MEMORY_LOCATION_DRAM`.
const DRAM: u32 = 2;
/// `NVML_MEMORY_LOCATION_SRAM`.
const SRAM: u32 = 7;
/// `NVML_DEVICE_ARCH_TURING`.
const TURING: i128 = 6;

/// The counter of the group, of errors of this type at this place.
fn errors(at: &At<'_>, kind: i128, location: u32) -> String {
    at.format(Query::MemoryErrors(kind as u32, at.argument(0), location), 0, count)
}

/// Boards before Turing count by cache.
fn tells_locations(at: &At<'_>) -> bool {
    at.number(Query::Architecture, 0).is_ok_and(|architecture| architecture < TURING)
}

/// Boards after Turing tell errors of SRAM apart.
fn tells_sources(at: &At<'_>) -> bool {
    at.number(Query::Architecture, 0).map_or(true, |architecture| architecture > TURING)
}
