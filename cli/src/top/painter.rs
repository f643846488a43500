//! Drawing of text, bars and sparklines, which also records the action of a click on them.

use ratatui::{buffer::Buffer, layout::Rect, style::Style};
use unicode_width::UnicodeWidthStr;

use super::{
    dialog::Page,
    keys::Action,
    processes::{Column, Key},
    text::{cut, fit_pieces},
    theme::Theme,
    view::View,
};
use crate::terminal::glyphs::Glyphs;
use crate::terminal::text::in_ascii;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Hit {
    Gpu(u32),
    Gpus,
    Tab(View),
    Middle,
    Heading(Column),
    Process(Key),
    Processes,
    Do(Action),
    Page(Page),
    /// A line of a dialog, by index.
    Dialog(usize),
}

pub(super) struct Painter<'a> {
    pub(super) buffer: &'a mut Buffer,
    pub(super) theme: &'a Theme,
    pub(super) glyphs: Glyphs,
    /// The clickable areas. Later entries are on top of earlier ones.
    pub(super) hits: Vec<(Rect, Hit)>,
}

impl Painter<'_> {
    /// Writes text, cut to this many columns, and returns the columns used.
    pub(super) fn text(&mut self, x: u16, y: u16, columns: u16, text: &str, style: Style) -> u16 {
        let area = self.buffer.area;
        if y < area.top() || y >= area.bottom() || x >= area.right() {
            return 0;
        }
        let columns = columns.min(area.right() - x);
        let text = cut(text, columns.into());
        self.buffer.set_stringn(x, y, &text, columns.into(), style);
        text.width() as u16
    }

    /// Writes one character that is one column wide.
    pub(super) fn cell(&mut self, x: u16, y: u16, symbol: char, style: Style) {
        if let Some(cell) = self.buffer.cell_mut((x, y)) {
            cell.set_char(symbol).set_style(style);
        }
    }

    /// Writes styled pieces one after the other, and returns the columns used.
    pub(super) fn line<T: AsRef<str>>(
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
            taken += self.text(x + taken, y, columns - taken, text, *style);
        }
        taken
    }

    /// Writes text that ends at the right edge of this many columns.
    pub(super) fn text_right(&mut self, x: u16, y: u16, columns: u16, text: &str, style: Style) {
        let text = cut(text, columns.into());
        let width = text.width() as u16;
        self.text(x + columns.saturating_sub(width), y, width, &text, style);
    }

    /// Draws a horizontal bar. With `None`, the space stays empty.
    pub(super) fn bar(&mut self, x: u16, y: u16, columns: u16, share: Option<f64>, style: Style) {
        let Some(share) = share else { return };
        let (full, empty) = self.glyphs.draw_bar(share, columns.into());
        self.line(x, y, columns, &[(full, style), (empty, self.theme.dim)]);
    }

    /// Draws a sparkline of values between 0 and 1, one row high.
    pub(super) fn spark(
        &mut self,
        x: u16,
        y: u16,
        values: impl Iterator<Item = Option<f64>>,
        style: Style,
    ) {
        let text = self.glyphs.draw_spark(values);
        self.text(x, y, text.width() as u16, &text, style);
    }

    pub(super) fn hit(&mut self, area: Rect, hit: Hit) {
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
                    let shown = in_ascii(cell.symbol());
                    cell.set_symbol(shown);
                }
            }
        }
        self.hits
    }
}

pub(super) fn row(area: Rect, line: u16) -> Rect {
    Rect {
        y: area.y + line,
        height: 1,
        ..area
    }
    .intersection(area)
}
