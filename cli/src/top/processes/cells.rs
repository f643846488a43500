//! The layout of the columns in the list of processes.

use unicode_width::UnicodeWidthStr;

use super::{ProcessView, columns::Column, rows::Row};
use crate::{
    table::{GOOD_LABEL_WIDTH, MIN_LABEL_WIDTH},
    terminal::columns::{Part, choose_parts},
};

const GAP: usize = 2;
/// The minimum width of a process's name with its job. Columns with additional details are omitted
/// to leave this width.
const MIN_LABEL_WIDTH_WITH_JOB: usize = 28;

/// The columns that fit, each with its position and width.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::top) struct Cells(pub(in crate::top) Vec<(Column, usize, usize)>);

impl Cells {
    /// Chooses as many of the selected columns as fit. The column with the name of the process
    /// takes the remaining width. If this width is too small, columns without content are omitted
    /// first.
    pub(in crate::top) fn new(view: &ProcessView, rows: &[Row<'_>], columns: usize) -> Self {
        let places = rows
            .iter()
            .map(|row| row.device_label().width())
            .max()
            .unwrap_or(0);
        let width = |column: Column| {
            if column == Column::Gpu {
                column.width().max(places)
            } else {
                column.width()
            }
        };
        let is_empty = |column: Column| {
            let is_nothing = |row: &Row<'_>| column.is_uninformative(&row.format_cell(column, 0));
            column != view.sort && !rows.is_empty() && rows.iter().all(is_nothing)
        };
        let has_what = view.columns.contains(&Column::What);
        let part = |column: &Column| {
            // Columns that are not in `OMISSION_ORDER` have rank 0, so they are never omitted.
            let place = Column::OMISSION_ORDER
                .iter()
                .position(|least| least == column);
            let rank = place.map_or(0, |place| Column::OMISSION_ORDER.len() - place);
            let (rank, rest) = match column {
                Column::What => return Part::default(),
                _ if has_what && rank > 0 && is_empty(*column) => {
                    (rank + Column::OMISSION_ORDER.len(), GOOD_LABEL_WIDTH)
                }
                _ if column.is_extra() => (rank, MIN_LABEL_WIDTH_WITH_JOB),
                _ => (rank, MIN_LABEL_WIDTH),
            };
            Part {
                width: width(*column),
                rank: rank as u8,
                rest: if has_what { rest } else { 0 },
            }
        };
        let parts: Vec<_> = view.columns.iter().map(part).collect();
        let fits = choose_parts(&parts, GAP, columns).into_iter();
        let fitting = view.columns.iter().zip(fits);
        let fitting: Vec<_> = fitting
            .filter(|(_, fits)| *fits)
            .map(|(column, _)| *column)
            .collect();
        let fixed: usize = fitting
            .iter()
            .filter(|column| **column != Column::What)
            .map(|column| width(*column) + GAP)
            .sum();
        // Wide terminals have room for long user names.
        let spare = if fitting.contains(&Column::User) && columns > fixed + 90 {
            8
        } else {
            0
        };
        let mut place = 0;
        let cells = fitting.into_iter().map(|column| {
            let width = match column {
                Column::What => columns.saturating_sub(fixed + spare),
                Column::User => column.width() + spare,
                _ => width(column),
            };
            let at = place;
            place += width + GAP;
            (column, at, width.min(columns.saturating_sub(at)))
        });
        Self(cells.filter(|(_, _, width)| *width > 0).collect())
    }
}
