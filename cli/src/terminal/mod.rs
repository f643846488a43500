//! The terminal: styles, lines, tables, charts, and what the terminal can show.

pub(crate) mod chart;
pub(crate) mod columns;
pub(crate) mod glyphs;
pub(crate) mod line;
pub(crate) mod output;
pub(crate) mod price;
pub(crate) mod screen;
#[cfg(test)]
pub(crate) mod snapshot;
pub(crate) mod status_line;
pub(crate) mod style;
pub(crate) mod text;
pub(crate) mod units;

use self::glyphs::Glyphs;

/// The room that there is, and the characters that can be shown.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Layout {
    /// Columns, to which all lines are cut; `None` if lines may be of any length.
    pub(crate) width: Option<usize>,
    /// Lines, to which a picture that is renewed is cut; `None` if there may be any number.
    pub(crate) height: Option<usize>,
    pub(crate) glyphs: Glyphs,
}

impl Layout {
    /// Returns the columns to fill. Lines of any length look best at the width of a wide terminal.
    pub(crate) fn columns(self) -> usize {
        self.width.unwrap_or(120)
    }
}
