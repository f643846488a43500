//! Drawing of text, bars and sparklines. The painter also records which areas can be clicked, and
//! the action of each click.

use ratatui::{buffer::Buffer, layout::Rect, style::Style};
use unicode_width::UnicodeWidthStr;

use super::{
    dialog::Page,
    keys::Action,
    layout::View,
    processes::{Column, ProcessKey},
    text::{cut, fit_pieces},
    theme::Theme,
};
use crate::terminal::{screen::Glyphs, text::to_ascii};

/// A line of text that consists of styled pieces.
pub(super) type StyledLine = Vec<(String, Style)>;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Hit {
    Gpu(u32),
    Gpus,
    Tab(View),
    Middle,
    Heading(Column),
    Process(ProcessKey),
    Processes,
    Do(Action),
    Page(Page),
    /// A line of a dialog, given by its index.
    Dialog(usize),
}

pub(super) struct Painter<'a> {
    pub(super) buffer: &'a mut Buffer,
    pub(super) theme: &'a Theme,
    pub(super) glyphs: Glyphs,
    /// The clickable areas. If areas overlap, the later entry is on top.
    pub(super) hits: Vec<(Rect, Hit)>,
}

impl Painter<'_> {
    /// Draws text that is cut to `columns` columns, and returns the number of columns used.
    pub(super) fn draw_text(
        &mut self,
        x: u16,
        y: u16,
        columns: u16,
        text: &str,
        style: Style,
    ) -> u16 {
        let area = self.buffer.area;
        if y < area.top() || y >= area.bottom() || x >= area.right() {
            return 0;
        }
        let columns = columns.min(area.right() - x);
        let text = cut(text, columns.into());
        self.buffer.set_stringn(x, y, &text, columns.into(), style);
        text.width() as u16
    }

    /// Draws a character with a width of one column.
    pub(super) fn draw_cell(&mut self, x: u16, y: u16, symbol: char, style: Style) {
        if let Some(cell) = self.buffer.cell_mut((x, y)) {
            cell.set_char(symbol).set_style(style);
        }
    }

    /// Draws styled pieces of text in sequence, and returns the number of columns used.
    pub(super) fn draw_pieces<T: AsRef<str>>(
        &mut self,
        x: u16,
        y: u16,
        columns: u16,
        parts: &[(T, Style)],
    ) -> u16 {
        let columns = columns.min(self.buffer.area.right().saturating_sub(x));
        let texts: Vec<&str> = parts.iter().map(|(text, _)| text.as_ref()).collect();
        let mut taken = 0;
        for (text, (_, style)) in fit_pieces(&texts, columns.into()).iter().zip(parts) {
            taken += self.draw_text(x + taken, y, columns - taken, text, *style);
        }
        taken
    }

    /// Draws right-aligned text in an area that is `columns` columns wide.
    pub(super) fn draw_text_right(
        &mut self,
        x: u16,
        y: u16,
        columns: u16,
        text: &str,
        style: Style,
    ) {
        let text = cut(text, columns.into());
        let width = text.width() as u16;
        self.draw_text(x + columns.saturating_sub(width), y, width, &text, style);
    }

    /// Draws a horizontal bar, or blanks if the value is `None`.
    pub(super) fn draw_bar(
        &mut self,
        x: u16,
        y: u16,
        columns: u16,
        share: Option<f64>,
        style: Style,
    ) {
        let Some(share) = share else { return };
        let (full, empty) = self.glyphs.draw_bar(share, columns.into());
        self.draw_pieces(x, y, columns, &[(full, style), (empty, self.theme.dim)]);
    }

    /// Draws a sparkline with a height of one row. The values are between 0 and 1.
    pub(super) fn draw_sparkline(
        &mut self,
        x: u16,
        y: u16,
        values: impl Iterator<Item = Option<f64>>,
        style: Style,
    ) {
        let text = self.glyphs.draw_sparkline(values);
        self.draw_text(x, y, text.width() as u16, &text, style);
    }

    /// Draws the minimum size of the screen, in columns and rows, on a screen that is smaller.
    pub(super) fn draw_minimum_size(&mut self, (columns, rows): (u16, u16)) {
        let screen = self.buffer.area;
        let text = format!(
            "{columns}x{rows} needed, the terminal has {}x{}",
            screen.width, screen.height
        );
        self.draw_text(screen.x, screen.y, screen.width, &text, self.theme.plain);
    }

    pub(super) fn add_clickable_area(&mut self, area: Rect, hit: Hit) {
        self.hits.push((area, hit));
    }

    pub(super) fn highlight(&mut self, area: Rect, style: Style) {
        self.buffer
            .set_style(area.intersection(self.buffer.area), style);
    }

    /// Replaces characters that a terminal without UTF-8 cannot show, and returns the clickable
    /// areas.
    pub(super) fn finish(self) -> Vec<(Rect, Hit)> {
        if self.glyphs == Glyphs::Ascii {
            for cell in &mut self.buffer.content {
                if !cell.symbol().is_ascii() {
                    let shown = to_ascii(cell.symbol());
                    cell.set_symbol(shown);
                }
            }
        }
        self.hits
    }
}

pub(super) fn row_area(area: Rect, line: u16) -> Rect {
    Rect {
        y: area.y + line,
        height: 1,
        ..area
    }
    .intersection(area)
}
