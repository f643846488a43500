//! Memory that failed and was replaced: pages up to Volta, rows since Ampere.

use gpumon_probe::vendor::nvml::query::{Answer, Code, Query as Q};

use super::super::cell::{Cell, at, number, yes};
use super::super::field::{Section, computed, field, titled};
use super::super::row::Row;
use crate::release;

pub(super) const RETIRED_PAGES: &[Section] = &[titled(
    "retired_pages",
    "A page of the board's memory that fails can be taken out of use: after several \
     errors of single bits in it, or one of two bits. From then on the driver gives \
     it to no program.",
    &[
        field(
            "retired_pages.single_bit_ecc.count or retired_pages.sbe",
            Q::RetiredPages(0),
            pages,
            "How many pages were taken out of use for errors of single bits.",
        ),
        field(
            "retired_pages.double_bit.count or retired_pages.dbe",
            Q::RetiredPages(1),
            pages,
            "How many pages were taken out of use for an error of two bits.",
        ),
        field(
            "retired_pages.pending",
            Q::RetiredPagesPending,
            yes::<0>,
            "Whether pages wait for the next reboot to be taken out of use. Until then \
             programs can still be given them, and meet further errors.",
        ),
    ],
)];

pub(super) const REMAPPED_ROWS: &[Section] = &[
    titled(
        "remapped_rows",
        "A row of the board's memory that fails can be replaced by a spare one: after \
         several errors of single bits in it, or one of two bits. One that waits for it \
         is replaced when the GPU is reset.",
        &[
            computed(
                "remapped_rows.correctable or remapped_rows.sbe",
                |row| rows(row, 0, 0),
                "How many rows were replaced for errors of single bits.",
            ),
            field(
                "remapped_rows.correctable_inactive",
                Q::RemappedRowsV2,
                number::<1>,
                "How many rows were replaced for errors of single bits without the replacement \
                 being in use.",
            )
            .except(release::BRANCH_590),
            computed(
                "remapped_rows.uncorrectable or remapped_rows.dbe",
                |row| rows(row, 2, 1),
                "How many rows were replaced for an error of two bits.",
            ),
            field(
                "remapped_rows.uncorrectable_inactive",
                Q::RemappedRowsV2,
                number::<3>,
                "How many rows were replaced for an error of two bits without the replacement \
                 being in use.",
            )
            .except(release::BRANCH_590),
            field(
                "remapped_rows.pending",
                Q::RemappedRows,
                yes::<2>,
                "Whether rows wait for the next reset to be replaced.",
            ),
            field(
                "remapped_rows.failure",
                Q::RemappedRows,
                yes::<3>,
                "Whether a row could not be replaced, ever.",
            ),
        ],
    ),
    titled(
        "remapped_rows.histogram",
        "How many spare rows the memory's banks have left.",
        &[
            field(
                "remapped_rows.histogram.max",
                Q::RowRemapperHistogram,
                number::<0>,
                "Banks that have all of them.",
            ),
            field(
                "remapped_rows.histogram.high",
                Q::RowRemapperHistogram,
                number::<1>,
                "Banks that have most of them.",
            ),
            field(
                "remapped_rows.histogram.partial",
                Q::RowRemapperHistogram,
                number::<2>,
                "Banks that have some of them.",
            ),
            field(
                "remapped_rows.histogram.low",
                Q::RowRemapperHistogram,
                number::<3>,
                "Banks that have few of them.",
            ),
            field(
                "remapped_rows.histogram.none",
                Q::RowRemapperHistogram,
                number::<4>,
                "Banks that have none.",
            ),
        ],
    ),
];

/// How many pages were retired: each is a time stamp and an address.
fn pages(answer: &Answer) -> Cell {
    let pages = answer.as_ref().map_err(|code| *code)?;
    Ok((pages.numbers().len() / 2).to_string())
}

/// One of the counts of [`Q::RemappedRowsV2`], which not every library has, or the same of [`Q::RemappedRows`].
fn rows(row: &Row<'_>, place: usize, older_place: usize) -> Cell {
    let count = match row.ask(Q::RemappedRowsV2) {
        Err(Code::FUNCTION_NOT_FOUND) => at(&row.ask(Q::RemappedRows), older_place),
        answer => at(&answer, place),
    };
    Ok(count?.to_string())
}
