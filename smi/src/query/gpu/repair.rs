//! Memory that failed and was replaced: pages up to Volta, rows since Ampere.

use gpumon_probe::vendor::nvml::query::{Code, Query as Q};

use super::super::cell::{Cell, number, yes};
use super::super::field::{Section, field};
use super::super::row::Row;

/// The fields of pages.
pub(super) const RETIRED_PAGES: &[Section<()>] = &[Section {
    title: Some((
        "retired_pages",
        "A page of the board's memory that fails can be taken out of use: after several errors of \
         single bits in it, or one of two bits. From then on the driver gives it to no program.",
    )),
    fields: &[
        field(
            "retired_pages.single_bit_ecc.count",
            "How many pages were taken out of use for errors of single bits.",
            pages::<0>,
        )
        .or("retired_pages.sbe"),
        field(
            "retired_pages.double_bit.count",
            "How many pages were taken out of use for an error of two bits.",
            pages::<1>,
        )
        .or("retired_pages.dbe"),
        field(
            "retired_pages.pending",
            "Whether pages wait for the next reboot to be taken out of use. Until then programs can still \
             be given them, and meet further errors.",
            |row| yes(row.ask(Q::RetiredPagesPending), 0),
        ),
    ],
}];

/// The fields of rows.
pub(in super::super) const REMAPPED_ROWS: &[Section<()>] = &[
    Section {
        title: Some((
            "remapped_rows",
            "A row of the board's memory that fails can be replaced by a spare one: after several errors \
             of single bits in it, or one of two bits. One that waits for it is replaced when the GPU is \
             reset.",
        )),
        fields: &[
            field("remapped_rows.correctable", "How many rows were replaced for errors of single bits.", |row| {
                rows(row, 0, 0)
            })
            .or("remapped_rows.sbe"),
            field(
                "remapped_rows.correctable_inactive",
                "How many rows were replaced for errors of single bits without the replacement being in use.",
                |row| number(row.ask(Q::RemappedRowsV2), 1),
            ),
            field("remapped_rows.uncorrectable", "How many rows were replaced for an error of two bits.", |row| {
                rows(row, 2, 1)
            })
            .or("remapped_rows.dbe"),
            field(
                "remapped_rows.uncorrectable_inactive",
                "How many rows were replaced for an error of two bits without the replacement being in use.",
                |row| number(row.ask(Q::RemappedRowsV2), 3),
            ),
            field("remapped_rows.pending", "Whether rows wait for the next reset to be replaced.", |row| {
                yes(row.ask(Q::RemappedRows), 2)
            }),
            field("remapped_rows.failure", "Whether a row could not be replaced, ever.", |row| {
                yes(row.ask(Q::RemappedRows), 3)
            }),
        ],
    },
    Section {
        title: Some(("remapped_rows.histogram", "How many spare rows the memory's banks have left.")),
        fields: &[
            field("remapped_rows.histogram.max", "Banks that have all of them.", banks::<0>),
            field("remapped_rows.histogram.high", "Banks that have most of them.", banks::<1>),
            field("remapped_rows.histogram.partial", "Banks that have some of them.", banks::<2>),
            field("remapped_rows.histogram.low", "Banks that have few of them.", banks::<3>),
            field("remapped_rows.histogram.none", "Banks that have none.", banks::<4>),
        ],
    },
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
