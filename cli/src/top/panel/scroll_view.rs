//! Scrollable lines of text with a fixed heading.

use ratatui::{layout::Rect, style::Style};

use crate::{
    terminal::{
        columns::{Column, Columns},
        line,
    },
    top::painter::Painter,
};

/// A line of text that consists of styled pieces.
pub(super) type StyledLine = Vec<(String, Style)>;

/// Formats a table, and returns its heading and its lines.
pub(super) fn format_table(
    painter: &Painter<'_>,
    area: Rect,
    columns: &[Column],
    rows: &[Vec<line::Line<Style>>],
) -> (StyledLine, Vec<StyledLine>) {
    let (plain, dim) = (painter.theme.plain, painter.theme.dim);
    let columns = Columns::new(columns, rows, Some(area.width.into()));
    let line = |row: &Vec<_>| {
        let pieces = columns.join_pieces(row, plain).into_pieces();
        pieces
            .into_iter()
            .map(|(style, text)| (text, style))
            .collect()
    };
    let lines = rows.iter().map(line).collect();
    (vec![(columns.plain_headings(), dim)], lines)
}

/// Draws as many lines as fit, starting at `scroll`, and the number of hidden lines above and
/// below. Returns the number of empty lines in the area.
pub(super) fn draw_scroll_view(
    painter: &mut Painter<'_>,
    area: Rect,
    heading: Option<&StyledLine>,
    lines: &[StyledLine],
    scroll: usize,
) -> u16 {
    let mut area = area;
    if let Some(heading) = heading.filter(|_| area.height > 1) {
        painter.draw_pieces(area.x, area.y, area.width, heading);
        area.y += 1;
        area.height -= 1;
    }
    let room = usize::from(area.height);
    let first = scroll.min(lines.len().saturating_sub(room));
    for (place, line) in lines.iter().skip(first).take(room).enumerate() {
        painter.draw_pieces(area.x, area.y + place as u16, area.width, line);
    }
    let below = lines.len().saturating_sub(first + room);
    if room > 0 && (first > 0 || below > 0) {
        let more = match (first, below) {
            (0, below) => format!(" {below} more ▼"),
            (above, 0) => format!(" {above} more ▲"),
            (above, below) => format!(" {above} ▲ {below} ▼"),
        };
        painter.draw_text_right(
            area.x,
            area.bottom() - 1,
            area.width,
            &more,
            painter.theme.dim,
        );
    }
    room.saturating_sub(lines.len()) as u16
}
