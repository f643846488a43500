//! Memory that was taken out of use: pages on older boards, rows on newer ones.

use gpumon_probe::vendor::nvml::query::{Code, Query as Q};

use super::{
    cursor::Cursor,
    format::{ABSENT, count, format_or_reason, word, yes_no},
    item::{Item, Layout, List, SAME, declared, group, list, number, unless, value},
    sections::Section,
};

pub(super) static ITEMS: &[Item] = &[
    group("Retired Pages", SAME)
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
    unless("Remapped Rows", SAME, |at| remapped(at, 0).err())
        .of(Section::ROW_REMAPPER)
        .holds(ROWS),
];

/// The retired pages of the `nvmlPageRetirementCause_t` in `about`.
static RETIREMENT: &[Item] = &[
    value("", "retired_count", retired),
    list("", "retired_pagelist", &PAGES),
];

/// The list of retired pages. A row has the address, after the cause from the group.
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
    rows("Correctable Error", "remapped_row_corr", &[0]),
    rows(
        "Inactive Correctable Error",
        "remapped_row_corr_inactive",
        &[1],
    )
    .when(tells_inactive),
    rows("Uncorrectable Error", "remapped_row_unc", &[2]),
    rows(
        "Inactive Uncorrectable Error",
        "remapped_row_unc_inactive",
        &[3],
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
        bank_count("Max", "row_remapper_histogram_max", 0),
        bank_count("High", "row_remapper_histogram_high", 1),
        bank_count("Partial", "row_remapper_histogram_partial", 2),
        bank_count("Low", "row_remapper_histogram_low", 3),
        bank_count("None", "row_remapper_histogram_none", 4),
    ]),
];

/// The value of NVML's `NVML_PAGE_RETIREMENT_CAUSE_MULTIPLE_SINGLE_BIT_ECC_ERRORS`.
const SINGLE_BIT: i128 = 0;
/// The value of NVML's `NVML_PAGE_RETIREMENT_CAUSE_DOUBLE_BIT_ECC_ERROR`.
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

/// Returns `true` if the driver has the newer query, which reports inactive rows.
fn tells_inactive(at: &Cursor<'_>) -> bool {
    at.ask(Q::RemappedRowsV2) != Err(Code::FUNCTION_NOT_FOUND)
}

/// Returns a number of [`Q::RemappedRowsV2`], or of the older query if the driver lacks the newer
/// one.
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

/// Defines a line with a count at an index of [`remapped`].
const fn rows(title: &'static str, tag: &'static str, place: &'static [i128]) -> Item {
    value(title, tag, |at| {
        format_or_reason(remapped(at, at.nth(0) as usize), count)
    })
    .about(place)
}

const fn bank_count(title: &'static str, tag: &'static str, place: usize) -> Item {
    number(title, tag, Q::RowRemapperHistogram, place, |banks| {
        format!("{banks} bank(s)")
    })
}
