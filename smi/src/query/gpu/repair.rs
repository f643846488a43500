//! Fields for replaced memory: retired pages up to Volta, remapped rows since Ampere.

use gpumon_probe::vendor::nvml::query::{Answer, Code, Query as Q};

use super::super::cell::{Cell, as_number, as_yes_no, number_at};
use super::super::field::{Section, field, row_field, with_title};
use super::super::row::Row;
use crate::release;

pub(super) const RETIRED_PAGES: &[Section] = &[with_title(
    "retired_pages",
    "A page of the board's memory that fails can be taken out of use: after several \
     errors of single bits in it, or one of two bits. From then on the driver gives \
     it to no program.",
    &[
        field(
            "retired_pages.single_bit_ecc.count or retired_pages.sbe",
            Q::RetiredPages(0),
            page_count,
            "How many pages were taken out of use for errors of single bits.",
        ),
        field(
            "retired_pages.double_bit.count or retired_pages.dbe",
            Q::RetiredPages(1),
            page_count,
            "How many pages were taken out of use for an error of two bits.",
        ),
        field(
            "retired_pages.pending",
            Q::RetiredPagesPending,
            as_yes_no::<0>,
            "Whether pages wait for the next reboot to be taken out of use. Until then \
             programs can still be given them, and meet further errors.",
        ),
    ],
)];

pub(super) const REMAPPED_ROWS: &[Section] = &[
    with_title(
        "remapped_rows",
        "A row of the board's memory that fails can be replaced by a spare one: after \
         several errors of single bits in it, or one of two bits. One that waits for it \
         is replaced when the GPU is reset.",
        &[
            row_field(
                "remapped_rows.correctable or remapped_rows.sbe",
                |row| rows(row, 0, 0),
                "How many rows were replaced for errors of single bits.",
            ),
            field(
                "remapped_rows.correctable_inactive",
                Q::RemappedRowsV2,
                as_number::<1>,
                "How many rows were replaced for errors of single bits without the replacement \
                 being in use.",
            )
            .except(release::BRANCH_590),
            row_field(
                "remapped_rows.uncorrectable or remapped_rows.dbe",
                |row| rows(row, 2, 1),
                "How many rows were replaced for an error of two bits.",
            ),
            field(
                "remapped_rows.uncorrectable_inactive",
                Q::RemappedRowsV2,
                as_number::<3>,
                "How many rows were replaced for an error of two bits without the replacement \
                 being in use.",
            )
            .except(release::BRANCH_590),
            field(
                "remapped_rows.pending",
                Q::RemappedRows,
                as_yes_no::<2>,
                "Whether rows wait for the next reset to be replaced.",
            ),
            field(
                "remapped_rows.failure",
                Q::RemappedRows,
                as_yes_no::<3>,
                "Whether a row could not be replaced, ever.",
            ),
        ],
    ),
    with_title(
        "remapped_rows.histogram",
        "How many spare rows the memory's banks have left.",
        &[
            field(
                "remapped_rows.histogram.max",
                Q::RowRemapperHistogram,
                as_number::<0>,
                "Banks that have all of them.",
            ),
            field(
                "remapped_rows.histogram.high",
                Q::RowRemapperHistogram,
                as_number::<1>,
                "Banks that have most of them.",
            ),
            field(
                "remapped_rows.histogram.partial",
                Q::RowRemapperHistogram,
                as_number::<2>,
                "Banks that have some of them.",
            ),
            field(
                "remapped_rows.histogram.low",
                Q::RowRemapperHistogram,
                as_number::<3>,
                "Banks that have few of them.",
            ),
            field(
                "remapped_rows.histogram.none",
                Q::RowRemapperHistogram,
                as_number::<4>,
                "Banks that have none.",
            ),
        ],
    ),
];

/// Returns the number of retired pages. The answer has two numbers for each page: a time stamp and
/// an address.
fn page_count(answer: &Answer) -> Cell {
    let pages = answer.as_ref().map_err(|code| *code)?;
    Ok((pages.numbers().len() / 2).to_string())
}

/// Returns a count of [`Q::RemappedRowsV2`], or the same count of [`Q::RemappedRows`] if the
/// library does not have the newer query.
fn rows(row: &Row<'_>, place: usize, older_place: usize) -> Cell {
    let count = match row.ask(Q::RemappedRowsV2) {
        Err(Code::FUNCTION_NOT_FOUND) => number_at(&row.ask(Q::RemappedRows), older_place),
        answer => number_at(&answer, place),
    };
    Ok(count?.to_string())
}
