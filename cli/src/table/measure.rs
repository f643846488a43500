//! How wide the cells of the GPUs' lines are, before room is shared out.

use unicode_width::UnicodeWidthStr;

use super::row::{EXTRAS, Row};
use crate::describe::BUSY_WIDTH;

#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Measure {
    pub(super) index: usize,
    pub(super) busy: usize,
    pub(super) used: usize,
    pub(super) total: usize,
    pub(super) temperature: usize,
    pub(super) draw: usize,
    pub(super) limit: usize,
    pub(super) extras: [usize; EXTRAS],
}

impl Measure {
    pub(super) fn new(rows: &[Row]) -> Self {
        let widest =
            |cell: fn(&Row) -> &str| rows.iter().map(|row| cell(row).width()).max().unwrap_or(0);
        let (total, limit) = (widest(|row| &row.total), widest(|row| &row.limit));
        let mut extras = [0; EXTRAS];
        for (place, extra) in extras.iter_mut().enumerate() {
            *extra = rows
                .iter()
                .map(|row| row.extras[place].width())
                .max()
                .unwrap_or(0);
        }
        Self {
            index: widest(|row| &row.index).max(2),
            // A number that grows does not move the others.
            busy: widest(|row| &row.busy).max(BUSY_WIDTH),
            used: widest(|row| &row.used).max(if total > 3 { total } else { total + 2 }),
            total,
            temperature: widest(|row| &row.temperature),
            draw: widest(|row| &row.draw).max(limit),
            limit,
            extras,
        }
    }

    /// No column narrower than it was.
    pub(super) fn widened(self, before: &Self) -> Self {
        let mut extras = self.extras;
        for (extra, before) in extras.iter_mut().zip(before.extras) {
            *extra = before.max(*extra);
        }
        Self {
            index: self.index.max(before.index),
            busy: self.busy.max(before.busy),
            used: self.used.max(before.used),
            total: self.total.max(before.total),
            temperature: self.temperature.max(before.temperature),
            draw: self.draw.max(before.draw),
            limit: self.limit.max(before.limit),
            extras,
        }
    }
}
