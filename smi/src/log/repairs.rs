//! Memory that was taken out of use: pages on older boards, rows on newer ones.

use gpumon_probe::vendor::nvml::query::{Code, Query as Q};

use super::{
    cursor::Cursor,
    format::{ABSENT, count, format_or_reason, word, yes_no},
    item::{Item, Layout, List, declared, group, list, number, unless, value},
    sections::Section,
};

pub(super) static ITEMS: &[Item] = &[
    group("Retired Pages", "retired_pages")
        .of(Section::PAGE_RETIREMENT)
        .holds(&[
            value("Single Bit ECC", "", retired).about(&[SINGLE_BIT]),
            value("Double Bit ECC", "", retired).about(&[DOUBLE_BIT]),
            group("", "multiple_single_bit_retirement")
                .about(&[SINGLE_BIT])
                .holds(RETIREMENT),
            group("", "double_bit_retirement")
                .about(&[DOUBLE_BIT])
                .holds(RETIREMENT),
            value("Pending Page Blacklist", "pending_blacklist", pending),
            value("", "pending_retirement", pending),
        ]),
    unless("Remapped Rows", "remapped_rows", |at| remapped(at, 0).err())
        .of(Section::ROW_REMAPPER)
        .holds(ROWS),
];

/// `about` is the `nvmlPageRetirementCause_t`.
static RETIREMENT: &[Item] = &[
    value("", "retired_count", retired),
    list("", "retired_pagelist", &PAGES),
];

/// A row is the cause, from the group above, and the page's address.
static PAGES: List = List {
    rows: |at| {
        let pages = at.ask(Q::RetiredPages(at.argument(0))).map_err(word)?;
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
        value("", "retired_page_address", |at| {
            format!("0x{:016x}", at.nth(1))
        }),
        declared("retired_page_timestamp", &[]),
    ],
    layout: Layout::Under(super::text::COLUMN),
};

static ROWS: &[Item] = &[
    value("Correctable Error", "remapped_row_corr", |at| {
        row_count(at, 0)
    }),
    value(
        "Inactive Correctable Error",
        "remapped_row_corr_inactive",
        |at| row_count(at, 1),
    )
    .when(tells_inactive),
    value("Uncorrectable Error", "remapped_row_unc", |at| {
        row_count(at, 2)
    }),
    value(
        "Inactive Uncorrectable Error",
        "remapped_row_unc_inactive",
        |at| row_count(at, 3),
    )
    .when(tells_inactive),
    value("Pending", "remapped_row_pending", |at| {
        format_or_reason(remapped(at, 4), yes_no)
    }),
    value("Remapping Failure Occurred", "remapped_row_failure", |at| {
        format_or_reason(remapped(at, 5), yes_no)
    }),
    unless(
        "Bank Remap Availability Histogram",
        "row_remapper_histogram",
        |at| at.number(Q::RowRemapperHistogram, 0).err(),
    )
    .holds(&[
        number(
            "Max",
            "row_remapper_histogram_max",
            Q::RowRemapperHistogram,
            0,
            banks,
        ),
        number(
            "High",
            "row_remapper_histogram_high",
            Q::RowRemapperHistogram,
            1,
            banks,
        ),
        number(
            "Partial",
            "row_remapper_histogram_partial",
            Q::RowRemapperHistogram,
            2,
            banks,
        ),
        number(
            "Low",
            "row_remapper_histogram_low",
            Q::RowRemapperHistogram,
            3,
            banks,
        ),
        number(
            "None",
            "row_remapper_histogram_none",
            Q::RowRemapperHistogram,
            4,
            banks,
        ),
    ]),
];

/// `NVML_PAGE_RETIREMENT_CAUSE_MULTIPLE_SINGLE_BIT_ECC_ERRORS`.
const SINGLE_BIT: i128 = 0;
/// `NVML_PAGE_RETIREMENT_CAUSE_DOUBLE_BIT_ECC_ERROR`.
const DOUBLE_BIT: i128 = 1;

fn retired(at: &Cursor<'_>) -> String {
    match at.ask(Q::RetiredPages(at.argument(0))) {
        Ok(pages) => (pages.numbers().len() / 2).to_string(),
        Err(code) => word(code),
    }
}

fn pending(at: &Cursor<'_>) -> String {
    at.format(Q::RetiredPagesPending, 0, yes_no)
}

/// The older query does not tell inactive rows.
fn tells_inactive(at: &Cursor<'_>) -> bool {
    at.ask(Q::RemappedRowsV2) != Err(Code::FUNCTION_NOT_FOUND)
}

/// A number of [`Q::RemappedRowsV2`]; of the older query where the driver does not have that.
fn remapped(at: &Cursor<'_>, place: usize) -> Result<i128, String> {
    if tells_inactive(at) {
        return at.number(Q::RemappedRowsV2, place);
    }
    match place {
        0 => at.number(Q::RemappedRows, 0),
        2 => at.number(Q::RemappedRows, 1),
        4 | 5 => at.number(Q::RemappedRows, place - 2),
        _ => Err(ABSENT.to_owned()),
    }
}

fn row_count(at: &Cursor<'_>, place: usize) -> String {
    format_or_reason(remapped(at, place), count)
}

fn banks(number: i128) -> String {
    format!("{number} bank(s)")
}
