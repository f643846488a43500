//! Items for memory errors, and for memory that has been taken out of use. Which counters a board
//! has depends on its generation.

use gpumon_probe::vendor::nvml::query::{Code, Query as Q};

use super::{
    item::{
        Item, Layout, List, Section, TITLE_AS_TAG, computed_item, dtd_only_item, group_item,
        list_item, number_item, replaceable_group_item,
    },
    text::VALUE_COLUMN,
    value::{
        ABSENT, Cursor, format_code, format_count, format_enabled, format_or_reason, format_yes_no,
    },
};

/// The items for the encryption mode, the ECC mode, and the error counters.
pub(super) static ECC_ITEMS: &[Item] = &[
    group_item(
        "DRAM Encryption Mode",
        TITLE_AS_TAG,
        &[
            number_item(
                "Current",
                "current_dram_encryption",
                Q::DramEncryptionMode,
                0,
                format_enabled,
            ),
            number_item(
                "Pending",
                "pending_dram_encryption",
                Q::DramEncryptionMode,
                1,
                format_enabled,
            ),
        ],
    ),
    group_item(
        "ECC Mode",
        TITLE_AS_TAG,
        &[
            number_item("Current", "current_ecc", Q::EccMode, 0, format_enabled),
            number_item("Pending", "pending_ecc", Q::EccMode, 1, format_enabled),
        ],
    )
    .show_in_section(Section::ECC),
    group_item(
        "ECC Errors",
        TITLE_AS_TAG,
        &[
            group_item("Volatile", TITLE_AS_TAG, ERROR_COUNTER_ITEMS)
                .with_position_numbers(&[VOLATILE]),
            group_item("Aggregate", TITLE_AS_TAG, ERROR_COUNTER_ITEMS)
                .with_position_numbers(&[AGGREGATE]),
            group_item(
                "Aggregate Uncorrectable SRAM Sources",
                TITLE_AS_TAG,
                &[
                    sram_error_item("SRAM L2", TITLE_AS_TAG, &[6]),
                    sram_error_item("SRAM SM", TITLE_AS_TAG, &[7]),
                    sram_error_item("SRAM Microcontroller", TITLE_AS_TAG, &[9]),
                    sram_error_item("SRAM PCIE", TITLE_AS_TAG, &[8]),
                    sram_error_item("SRAM Other", TITLE_AS_TAG, &[10]),
                ],
            )
            .show_when(distinguishes_sram_sources),
            number_item(
                "Channel Repair Pending",
                TITLE_AS_TAG,
                Q::RepairStatus,
                0,
                format_yes_no,
            )
            .show_when(distinguishes_sram_sources),
            number_item(
                "TPC Repair Pending",
                TITLE_AS_TAG,
                Q::RepairStatus,
                1,
                format_yes_no,
            )
            .show_when(distinguishes_sram_sources),
            number_item(
                "Unrepairable Memory",
                TITLE_AS_TAG,
                Q::UnrepairableMemory,
                0,
                format_yes_no,
            )
            .show_when(distinguishes_sram_sources),
        ],
    )
    .show_in_section(Section::ECC),
];

/// The items for one type of error counter. The number in `about` is its `nvmlEccCounterType_t`. On
/// older boards, nvidia-smi pads the headings with spaces.
static ERROR_COUNTER_ITEMS: &[Item] = &[
    group_item("Single Bit            ", TITLE_AS_TAG, ERROR_LOCATION_ITEMS)
        .with_position_numbers(&[CORRECTED])
        .show_when(counts_errors_by_cache),
    group_item("Double Bit            ", TITLE_AS_TAG, ERROR_LOCATION_ITEMS)
        .with_position_numbers(&[UNCORRECTED])
        .show_when(counts_errors_by_cache),
    computed_item("SRAM Correctable", TITLE_AS_TAG, |at| {
        if distinguishes_sram_sources(at) {
            format_sram_errors(
                at,
                if at.number_at(0) == VOLATILE { 5 } else { 2 },
                format_count,
            )
        } else {
            format_error_count(at, CORRECTED as u32, SRAM as u32)
        }
    })
    .show_when(|at| !counts_errors_by_cache(at)),
    error_item("SRAM Uncorrectable", TITLE_AS_TAG, &[UNCORRECTED, SRAM])
        .show_when(|at| !counts_errors_by_cache(at) && !distinguishes_sram_sources(at)),
    computed_item("SRAM Uncorrectable Parity", TITLE_AS_TAG, |at| {
        format_sram_errors(
            at,
            if at.number_at(0) == VOLATILE { 3 } else { 0 },
            format_count,
        )
    })
    .show_when(distinguishes_sram_sources),
    computed_item(
        "SRAM Uncorrectable SEC-DED",
        "sram_uncorrectable_secded",
        |at| {
            format_sram_errors(
                at,
                if at.number_at(0) == VOLATILE { 4 } else { 1 },
                format_count,
            )
        },
    )
    .show_when(distinguishes_sram_sources),
    error_item("DRAM Correctable", TITLE_AS_TAG, &[CORRECTED, DRAM])
        .show_when(|at| !counts_errors_by_cache(at)),
    error_item("DRAM Uncorrectable", TITLE_AS_TAG, &[UNCORRECTED, DRAM])
        .show_when(|at| !counts_errors_by_cache(at)),
    computed_item("SRAM Threshold Exceeded", TITLE_AS_TAG, |at| {
        format_sram_errors(at, 11, format_yes_no)
    })
    .show_when(|at| distinguishes_sram_sources(at) && at.number_at(0) == AGGREGATE),
];

/// The items for the error counters of each memory location. `about` contains the counter type and
/// the `nvmlMemoryErrorType_t`.
static ERROR_LOCATION_ITEMS: &[Item] = &[
    error_item("Device Memory", TITLE_AS_TAG, &[2]),
    error_item("Register File", TITLE_AS_TAG, &[3]),
    error_item("L1 Cache", TITLE_AS_TAG, &[0]),
    error_item("L2 Cache", TITLE_AS_TAG, &[1]),
    error_item("Texture Memory", TITLE_AS_TAG, &[4]),
    error_item("Texture Shared", "texture_shm", &[5]),
    error_item("CBU", TITLE_AS_TAG, &[6]),
    computed_item("Total", TITLE_AS_TAG, |at| {
        at.read_formatted(
            Q::TotalEccErrors(at.argument_at(1), at.argument_at(0)),
            0,
            format_count,
        )
    }),
];

const VOLATILE: i128 = 0;
const AGGREGATE: i128 = 1;
const CORRECTED: i128 = 0;
const UNCORRECTED: i128 = 1;
/// The value of `NVML_MEMORY_LOCATION_DRAM`.
const DRAM: i128 = 2;
/// The value of `NVML_MEMORY_LOCATION_SRAM`.
const SRAM: i128 = 7;
/// The value of `NVML_DEVICE_ARCH_TURING`.
const TURING: i128 = 6;

/// Defines an item for the errors at one `nvmlMemoryLocation_t`. `about` contains the error type
/// and the location; the counter type comes from the enclosing group.
const fn error_item(title: &'static str, tag: &'static str, about: &'static [i128]) -> Item {
    computed_item(title, tag, |at| {
        format_error_count(at, at.argument_at(1), at.argument_at(2))
    })
    .with_position_numbers(about)
}

fn format_error_count(at: &Cursor<'_>, kind: u32, location: u32) -> String {
    format_if_ecc_enabled(at, |at| {
        at.read_formatted(
            Q::MemoryErrors(kind, at.argument_at(0), location),
            0,
            format_count,
        )
    })
}

/// Defines an item for one of the numbers in the answer to [`Q::SramEccErrors`].
const fn sram_error_item(title: &'static str, tag: &'static str, place: &'static [i128]) -> Item {
    computed_item(title, tag, |at| {
        format_sram_errors(at, at.number_at(0) as usize, format_count)
    })
    .with_position_numbers(place)
}

fn format_sram_errors(at: &Cursor<'_>, place: usize, format: fn(i128) -> String) -> String {
    format_if_ecc_enabled(at, |at| at.read_formatted(Q::SramEccErrors, place, format))
}

/// Returns the text if ECC is enabled, otherwise the reason for its absence. Without ECC,
/// nvidia-smi prints no counters, even if the driver returns zeros, as it does for a `GeForce` RTX
/// 4080 SUPER. This was verified with nvidia-smi 580 on an H100, by modifying the driver's answers.
fn format_if_ecc_enabled(at: &Cursor<'_>, text: impl Fn(&Cursor<'_>) -> String) -> String {
    match at.read_number(Q::EccMode, 0) {
        Ok(1) => text(at),
        Ok(_) => ABSENT.to_owned(),
        Err(absent) => absent,
    }
}

/// Returns `true` for boards before Turing, which count errors separately for each cache.
fn counts_errors_by_cache(at: &Cursor<'_>) -> bool {
    at.read_number(Q::Architecture, 0)
        .is_ok_and(|architecture| architecture < TURING)
}

/// Returns `true` for boards newer than Turing, which distinguish the sources of SRAM errors.
fn distinguishes_sram_sources(at: &Cursor<'_>) -> bool {
    at.read_number(Q::Architecture, 0)
        .map_or(true, |architecture| architecture > TURING)
}

// Memory that has been taken out of use: pages on older boards, rows on newer boards.

pub(super) static REPAIR_ITEMS: &[Item] = &[
    group_item(
        "Retired Pages",
        TITLE_AS_TAG,
        &[
            computed_item("Single Bit ECC", "", format_retired_page_count)
                .with_position_numbers(&[SINGLE_BIT]),
            computed_item("Double Bit ECC", "", format_retired_page_count)
                .with_position_numbers(&[DOUBLE_BIT]),
            group_item("", "multiple_single_bit_retirement", RETIREMENT_ITEMS)
                .with_position_numbers(&[SINGLE_BIT]),
            group_item("", "double_bit_retirement", RETIREMENT_ITEMS)
                .with_position_numbers(&[DOUBLE_BIT]),
            computed_item(
                "Pending Page Blacklist",
                "pending_blacklist",
                format_pending_retirement,
            ),
            computed_item("", "pending_retirement", format_pending_retirement),
        ],
    )
    .show_in_section(Section::PAGE_RETIREMENT),
    replaceable_group_item(
        "Remapped Rows",
        TITLE_AS_TAG,
        |at| read_remapped_rows(at, 0).err(),
        REMAPPED_ROW_ITEMS,
    )
    .show_in_section(Section::ROW_REMAPPER),
];

/// The items for the pages that were retired for one cause. `about` contains the
/// `nvmlPageRetirementCause_t`.
static RETIREMENT_ITEMS: &[Item] = &[
    computed_item("", "retired_count", format_retired_page_count),
    list_item("", "retired_pagelist", &RETIRED_PAGES),
];

/// The list of retired pages. Each row contains the page's address; the cause comes from the
/// enclosing group.
static RETIRED_PAGES: List = List {
    rows: |at| {
        let pages = at
            .run_query(Q::RetiredPages(at.argument_at(0)))
            .map_err(format_code)?;
        Ok(pages
            .numbers()
            .as_chunks()
            .0
            .iter()
            .map(|[_, address]| vec![*address])
            .collect())
    },
    tag: "retired_page",
    items: &[
        computed_item("", "retired_page_address", |at| {
            format!("0x{:016x}", at.number_at(1))
        }),
        dtd_only_item("retired_page_timestamp", &[]),
    ],
    layout: Layout::Under(VALUE_COLUMN),
};

static REMAPPED_ROW_ITEMS: &[Item] = &[
    remapped_rows_item("Correctable Error", "remapped_row_corr", &[0]),
    remapped_rows_item(
        "Inactive Correctable Error",
        "remapped_row_corr_inactive",
        &[1],
    )
    .show_when(reports_inactive_rows),
    remapped_rows_item("Uncorrectable Error", "remapped_row_unc", &[2]),
    remapped_rows_item(
        "Inactive Uncorrectable Error",
        "remapped_row_unc_inactive",
        &[3],
    )
    .show_when(reports_inactive_rows),
    computed_item("Pending", "remapped_row_pending", |at| {
        format_or_reason(read_remapped_rows(at, 4), format_yes_no)
    }),
    computed_item("Remapping Failure Occurred", "remapped_row_failure", |at| {
        format_or_reason(read_remapped_rows(at, 5), format_yes_no)
    }),
    replaceable_group_item(
        "Bank Remap Availability Histogram",
        "row_remapper_histogram",
        |at| at.read_number(Q::RowRemapperHistogram, 0).err(),
        &[
            bank_count_item("Max", "row_remapper_histogram_max", 0),
            bank_count_item("High", "row_remapper_histogram_high", 1),
            bank_count_item("Partial", "row_remapper_histogram_partial", 2),
            bank_count_item("Low", "row_remapper_histogram_low", 3),
            bank_count_item("None", "row_remapper_histogram_none", 4),
        ],
    ),
];

/// The value of `NVML_PAGE_RETIREMENT_CAUSE_MULTIPLE_SINGLE_BIT_ECC_ERRORS`.
const SINGLE_BIT: i128 = 0;
/// The value of `NVML_PAGE_RETIREMENT_CAUSE_DOUBLE_BIT_ECC_ERROR`.
const DOUBLE_BIT: i128 = 1;

fn format_retired_page_count(at: &Cursor<'_>) -> String {
    match at.run_query(Q::RetiredPages(at.argument_at(0))) {
        Ok(pages) => (pages.numbers().len() / 2).to_string(),
        Err(code) => format_code(code),
    }
}

fn format_pending_retirement(at: &Cursor<'_>) -> String {
    at.read_formatted(Q::RetiredPagesPending, 0, format_yes_no)
}

/// Returns `true` if the driver has the newer query, which reports inactive rows.
fn reports_inactive_rows(at: &Cursor<'_>) -> bool {
    at.run_query(Q::RemappedRowsV2) != Err(Code::FUNCTION_NOT_FOUND)
}

/// Returns a number from the answer to [`Q::RemappedRowsV2`], or to the older query if the driver
/// lacks the newer one.
fn read_remapped_rows(at: &Cursor<'_>, place: usize) -> Result<i128, String> {
    if reports_inactive_rows(at) {
        return at.read_number(Q::RemappedRowsV2, place);
    }
    match place {
        0 => at.read_number(Q::RemappedRows, 0),
        2 => at.read_number(Q::RemappedRows, 1),
        4 | 5 => at.read_number(Q::RemappedRows, place - 2),
        _ => Err(ABSENT.to_owned()),
    }
}

/// Defines a line with one of the counts of remapped rows. `place` is the count's position in the
/// answer.
const fn remapped_rows_item(
    title: &'static str,
    tag: &'static str,
    place: &'static [i128],
) -> Item {
    computed_item(title, tag, |at| {
        format_or_reason(
            read_remapped_rows(at, at.number_at(0) as usize),
            format_count,
        )
    })
    .with_position_numbers(place)
}

const fn bank_count_item(title: &'static str, tag: &'static str, place: usize) -> Item {
    number_item(title, tag, Q::RowRemapperHistogram, place, |banks| {
        format!("{banks} bank(s)")
    })
}
