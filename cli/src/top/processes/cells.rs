//! Which columns the list has, and where each stands.

use unicode_width::UnicodeWidthStr;

use super::{ProcessView, columns::Column, rows::Row};
use crate::table::{GOOD_WHAT, SHORTEST_WHAT};

const GAP: usize = 2;
/// Columns that only add to others make way until there is room for a name and the job behind it.
const WHAT_WITH_JOB: usize = 28;

/// The columns that fit, each with its place and its width.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::top) struct Cells(pub(in crate::top) Vec<(Column, usize, usize)>);

impl Cells {
    /// As many of the chosen columns as fit; the last takes what is left where it is what the process is. Where that is
    /// little, columns in which nothing stands go first.
    pub(in crate::top) fn new(view: &ProcessView, rows: &[Row<'_>], columns: usize) -> Self {
        let mut fitting = view.columns.clone();
        let places = rows
            .iter()
            .map(|row| row.place().width())
            .max()
            .unwrap_or(0);
        let width = |column: Column| {
            if column == Column::Gpu {
                column.width().max(places)
            } else {
                column.width()
            }
        };
        let taken = |fitting: &[Column], what: usize| -> usize {
            fitting
                .iter()
                .map(|column| {
                    GAP + if *column == Column::What {
                        what
                    } else {
                        width(*column)
                    }
                })
                .sum()
        };
        let is_empty = |column: Column| {
            let is_nothing = |row: &Row<'_>| column.is_nothing(&row.cell(column, 0));
            column != view.sort && !rows.is_empty() && rows.iter().all(is_nothing)
        };
        for least in Column::LEAST {
            let is_tight =
                fitting.contains(&Column::What) && taken(&fitting, GOOD_WHAT) > columns + GAP;
            if is_tight && fitting.contains(&least) && is_empty(least) {
                fitting.retain(|column| *column != least);
            }
        }
        for least in Column::LEAST {
            let what = if least.is_extra() {
                WHAT_WITH_JOB
            } else {
                SHORTEST_WHAT
            };
            if taken(&fitting, what) > columns + GAP {
                fitting.retain(|column| *column != least);
            }
        }
        let fixed: usize = fitting
            .iter()
            .filter(|column| **column != Column::What)
            .map(|column| width(*column) + GAP)
            .sum();
        // Wide terminals have room for long names.
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
