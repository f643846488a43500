//! Fields for repaired memory: retired pages on boards up to Volta, and remapped rows on boards
//! since Ampere.

use gpumon_probe::vendor::nvml::query::{Answer, Code, Query as Q};

use super::super::cell::{Cell, as_number, format_yes_no, read_number};
use super::super::field::{Section, field, row_field, with_title};
use super::super::row::Row;
use crate::release;

pub(super) const RETIRED_PAGES: &[Section] = &[with_title(
    "retired_pages",
    "Pages of the device memory that fail can be retired: after several single-bit errors in the \
     page, or after one double-bit error. The driver does not allocate retired pages to programs.",
    &[
        field(
            "retired_pages.single_bit_ecc.count or retired_pages.sbe",
            Q::RetiredPages(0),
            format_page_count,
            "The number of pages that were retired because of several single-bit errors.",
        ),
        field(
            "retired_pages.double_bit.count or retired_pages.dbe",
            Q::RetiredPages(1),
            format_page_count,
            "The number of pages that were retired because of a double-bit error.",
        ),
        field(
            "retired_pages.pending",
            Q::RetiredPagesPending,
            format_yes_no::<0>,
            "Whether pages will be retired at the next reboot. Until then, programs can still use \
             these pages, and further errors can occur.",
        ),
    ],
)];

pub(super) const REMAPPED_ROWS: &[Section] = &[
    with_title(
        "remapped_rows",
        "Rows of the device memory that fail can be replaced by spare rows: after several \
         single-bit errors in the row, or after one double-bit error. A pending replacement takes \
         effect when the GPU is reset.",
        &[
            row_field(
                "remapped_rows.correctable or remapped_rows.sbe",
                |row| format_rows(row, 0, 0),
                "The number of rows that were replaced because of single-bit errors.",
            ),
            field(
                "remapped_rows.correctable_inactive",
                Q::RemappedRowsV2,
                as_number::<1>,
                "The number of rows that were replaced because of single-bit errors, but whose \
                 replacement is not in use.",
            )
            .except(release::BRANCH_590),
            row_field(
                "remapped_rows.uncorrectable or remapped_rows.dbe",
                |row| format_rows(row, 2, 1),
                "The number of rows that were replaced because of a double-bit error.",
            ),
            field(
                "remapped_rows.uncorrectable_inactive",
                Q::RemappedRowsV2,
                as_number::<3>,
                "The number of rows that were replaced because of a double-bit error, but whose \
                 replacement is not in use.",
            )
            .except(release::BRANCH_590),
            field(
                "remapped_rows.pending",
                Q::RemappedRows,
                format_yes_no::<2>,
                "Whether rows will be replaced at the next reset.",
            ),
            field(
                "remapped_rows.failure",
                Q::RemappedRows,
                format_yes_no::<3>,
                "Whether the replacement of a row has ever failed.",
            ),
        ],
    ),
    with_title(
        "remapped_rows.histogram",
        "The numbers of memory banks by their remaining spare rows.",
        &[
            field(
                "remapped_rows.histogram.max",
                Q::RowRemapperHistogram,
                as_number::<0>,
                "The number of banks with all spare rows.",
            ),
            field(
                "remapped_rows.histogram.high",
                Q::RowRemapperHistogram,
                as_number::<1>,
                "The number of banks with most spare rows.",
            ),
            field(
                "remapped_rows.histogram.partial",
                Q::RowRemapperHistogram,
                as_number::<2>,
                "The number of banks with some spare rows.",
            ),
            field(
                "remapped_rows.histogram.low",
                Q::RowRemapperHistogram,
                as_number::<3>,
                "The number of banks with few spare rows.",
            ),
            field(
                "remapped_rows.histogram.none",
                Q::RowRemapperHistogram,
                as_number::<4>,
                "The number of banks without spare rows.",
            ),
        ],
    ),
];

/// Returns the number of retired pages. The answer contains two numbers per page: its timestamp and
/// its address.
fn format_page_count(answer: &Answer) -> Cell {
    let pages = answer.as_ref().map_err(|code| *code)?;
    Ok((pages.numbers().len() / 2).to_string())
}

/// Returns a count from the answer to [`Q::RemappedRowsV2`]. If the library lacks this query,
/// returns the corresponding count from [`Q::RemappedRows`].
fn format_rows(row: &Row<'_>, place: usize, older_place: usize) -> Cell {
    let count = match row.run_query(Q::RemappedRowsV2) {
        Err(Code::FUNCTION_NOT_FOUND) => read_number(&row.run_query(Q::RemappedRows), older_place),
        answer => read_number(&answer, place),
    };
    Ok(count?.to_string())
}
