//! Memory that failed and was replaced: pages up to Volta, rows since Ampere.

use gpumon_probe::vendor::nvml::query::{Code, Query as Q};

use super::super::cell::{Cell, number, yes};
use super::super::field::{Section, field, titled};
use super::super::row::Row;
use crate::release;

pub(super) const RETIRED_PAGES: &[Section<()>] = &[titled(
    "retired_pages",
    "A page of the board's memory that fails can be taken out of use: after several errors of single bits in it, or \
     one of two bits. From then on the driver gives it to no program.",
    &[
        field("retired_pages.single_bit_ecc.count or retired_pages.sbe", pages::<0>)
            .about("How many pages were taken out of use for errors of single bits."),
        field("retired_pages.double_bit.count or retired_pages.dbe", pages::<1>)
            .about("How many pages were taken out of use for an error of two bits."),
        field("retired_pages.pending", |row| yes(row.ask(Q::RetiredPagesPending), 0)).about(
            "Whether pages wait for the next reboot to be taken out of use. Until then programs can still be given \
             them, and meet further errors.",
        ),
    ],
)];

pub(super) const REMAPPED_ROWS: &[Section<()>] = &[
    titled(
        "remapped_rows",
        "A row of the board's memory that fails can be replaced by a spare one: after several errors of single bits in \
         it, or one of two bits. One that waits for it is replaced when the GPU is reset.",
        &[
            field("remapped_rows.correctable or remapped_rows.sbe", |row| rows(row, 0, 0))
                .about("How many rows were replaced for errors of single bits."),
            field("remapped_rows.correctable_inactive", |row| number(row.ask(Q::RemappedRowsV2), 1))
                .about("How many rows were replaced for errors of single bits without the replacement being in use.")
                .except(release::BRANCH_590),
            field("remapped_rows.uncorrectable or remapped_rows.dbe", |row| rows(row, 2, 1))
                .about("How many rows were replaced for an error of two bits."),
            field("remapped_rows.uncorrectable_inactive", |row| number(row.ask(Q::RemappedRowsV2), 3))
                .about("How many rows were replaced for an error of two bits without the replacement being in use.")
                .except(release::BRANCH_590),
            field("remapped_rows.pending", |row| yes(row.ask(Q::RemappedRows), 2))
                .about("Whether rows wait for the next reset to be replaced."),
            field("remapped_rows.failure", |row| yes(row.ask(Q::RemappedRows), 3))
                .about("Whether a row could not be replaced, ever."),
        ],
    ),
    titled(
        "remapped_rows.histogram",
        "How many spare rows the memory's banks have left.",
        &[
            field("remapped_rows.histogram.max", banks::<0>).about("Banks that have all of them."),
            field("remapped_rows.histogram.high", banks::<1>).about("Banks that have most of them."),
            field("remapped_rows.histogram.partial", banks::<2>).about("Banks that have some of them."),
            field("remapped_rows.histogram.low", banks::<3>).about("Banks that have few of them."),
            field("remapped_rows.histogram.none", banks::<4>).about("Banks that have none."),
        ],
    ),
];

/// How many pages were retired for one `nvmlPageRetirementCause_t`.
fn pages<const CAUSE: u32>(row: &Row<'_, ()>) -> Cell {
    // Each is a time stamp and an address.
    Ok((row.ask(Q::RetiredPages(CAUSE))?.numbers().len() / 2).to_string())
}

/// One of the counts of [`Q::RemappedRowsV2`], which not every library has, or the same of [`Q::RemappedRows`].
fn rows(row: &Row<'_, ()>, place: usize, older_place: usize) -> Cell {
    match row.ask(Q::RemappedRowsV2) {
        Err(Code::FUNCTION_NOT_FOUND) => number(row.ask(Q::RemappedRows), older_place),
        answer => number(answer, place),
    }
}

fn banks<const PLACE: usize>(row: &Row<'_, ()>) -> Cell {
    number(row.ask(Q::RowRemapperHistogram), PLACE)
}
