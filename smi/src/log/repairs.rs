//! Items for memory that has been taken out of use: pages on older boards, rows on newer boards.

use gpumon_probe::vendor::nvml::query::{Code, Query as Q};

use super::{
    cursor::Cursor,
    format::{ABSENT, format_code, format_count, format_or_reason, format_yes_no},
    item::{
        Item, Layout, List, TITLE_AS_TAG, computed_item, declared_item, group_item, list_item,
        number_item, replaceable_group_item,
    },
    sections::Section,
};

pub(super) static REPAIR_ITEMS: &[Item] = &[
    group_item("Retired Pages", TITLE_AS_TAG)
        .show_in_section(Section::PAGE_RETIREMENT)
        .with_items(&[
            computed_item("Single Bit ECC", "", format_retired_page_count)
                .with_numbers(&[SINGLE_BIT]),
            computed_item("Double Bit ECC", "", format_retired_page_count)
                .with_numbers(&[DOUBLE_BIT]),
            group_item("", "multiple_single_bit_retirement")
                .with_numbers(&[SINGLE_BIT])
                .with_items(RETIREMENT),
            group_item("", "double_bit_retirement")
                .with_numbers(&[DOUBLE_BIT])
                .with_items(RETIREMENT),
            computed_item(
                "Pending Page Blacklist",
                "pending_blacklist",
                format_pending_retirement,
            ),
            computed_item("", "pending_retirement", format_pending_retirement),
        ]),
    replaceable_group_item("Remapped Rows", TITLE_AS_TAG, |at| {
        read_remapped_rows(at, 0).err()
    })
    .show_in_section(Section::ROW_REMAPPER)
    .with_items(ROWS),
];

/// The items for the pages retired for the `nvmlPageRetirementCause_t` in `about`.
static RETIREMENT: &[Item] = &[
    computed_item("", "retired_count", format_retired_page_count),
    list_item("", "retired_pagelist", &PAGES),
];

/// The list of retired pages. Each row contains the page's address; the cause comes from the
/// enclosing group.
static PAGES: List = List {
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
        declared_item("retired_page_timestamp", &[]),
    ],
    layout: Layout::Under(super::text::VALUE_COLUMN),
};

static ROWS: &[Item] = &[
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
    )
    .with_items(&[
        bank_count_item("Max", "row_remapper_histogram_max", 0),
        bank_count_item("High", "row_remapper_histogram_high", 1),
        bank_count_item("Partial", "row_remapper_histogram_partial", 2),
        bank_count_item("Low", "row_remapper_histogram_low", 3),
        bank_count_item("None", "row_remapper_histogram_none", 4),
    ]),
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
    .with_numbers(place)
}

const fn bank_count_item(title: &'static str, tag: &'static str, place: usize) -> Item {
    number_item(title, tag, Q::RowRemapperHistogram, place, |banks| {
        format!("{banks} bank(s)")
    })
}
