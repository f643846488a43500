//! Terminal output: styles, lines, tables, charts, and supported characters.

pub(crate) mod columns;
pub(crate) mod line;
pub(crate) mod output;
pub(crate) mod screen;
#[cfg(test)]
pub(crate) mod snapshot;
pub(crate) mod text;
pub(crate) mod units;

use self::screen::Glyphs;

/// The space and the character set available for output.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Layout {
    /// The width to which all lines are cut, or `None` for lines of any length.
    pub(crate) width: Option<usize>,
    /// The height to which repeatedly printed output is cut, or `None` for any number of lines.
    pub(crate) height: Option<usize>,
    pub(crate) glyphs: Glyphs,
}

impl Layout {
    /// Returns the width to fill. If lines may have any length, this is the width of a wide
    /// terminal.
    pub(crate) fn columns(self) -> usize {
        self.width.unwrap_or(120)
    }
}
