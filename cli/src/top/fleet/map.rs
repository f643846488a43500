//! The map of nodes. It shows as many nodes as fit, with one cell per GPU, and details of the
//! selected node below.

use super::list::MAX_CELLS;
use ratatui::layout::Rect;

use super::{
    app::{FleetApp, NodeCapacity},
    cell::{cell_position as place_of, count_cells, draw_cell},
    list::find_first_visible,
};
use crate::{
    fleet::{
        nodes::FleetLine,
        text::{format_memory, format_power},
    },
    top::painter::Painter,
};

/// The number of lines with details of the selected node.
const DETAIL_LINES: u16 = 2;

pub(super) fn draw_map(
    painter: &mut Painter<'_>,
    area: Rect,
    lines: &[FleetLine<'_>],
    app: &mut FleetApp,
) {
    let cells = count_cells(lines, MAX_CELLS);
    // Each node is preceded by one column for the selection mark, and the last node is also
    // followed by one column.
    let in_a_row = usize::from(area.width.saturating_sub(1)) / (cells + 1);
    let height = usize::from(area.height.saturating_sub(DETAIL_LINES));
    let (in_a_row, height) = (in_a_row.max(1), height.max(1));
    app.room = NodeCapacity {
        nodes: in_a_row * height,
        in_a_row,
    };
    let place = app.selected_position(lines);
    let many = lines.len().div_ceil(in_a_row);
    let top = find_first_visible(
        app.first / in_a_row,
        place.map(|place| place / in_a_row),
        height,
        many,
    );
    app.first = top * in_a_row;
    let shown = &lines[app.first.min(lines.len())..(app.first + app.room.nodes).min(lines.len())];
    for (at, line) in shown.iter().enumerate() {
        let rows = line.rows;
        let x = area.x + 1 + (at % in_a_row * (cells + 1)) as u16;
        let y = area.y + (at / in_a_row) as u16;
        for row in line.gpus.iter().filter(|row| place_of(rows, **row) < cells) {
            let (symbol, style) = draw_cell(rows, *row, app.metric, painter.theme, painter.glyphs);
            painter.draw_cell(x + place_of(rows, *row) as u16, y, symbol, style);
        }
        if line.gpus.is_empty() {
            let unknown = "?".repeat(cells.min(line.sum.gpus.max(1) as usize));
            painter.draw_text(x, y, cells as u16, &unknown, painter.theme.alarm);
        }
        let node = Rect {
            x,
            y,
            width: cells as u16,
            height: 1,
        };
        if place == Some(app.first + at) {
            painter.draw_text(x - 1, y, 1, "[", painter.theme.strong);
            painter.draw_text(x + cells as u16, y, 1, "]", painter.theme.strong);
        }
        let name = rows.node_name(line.node).to_owned();
        app.hits.push((node, name));
    }
    let about = Rect {
        y: area.bottom().saturating_sub(DETAIL_LINES),
        height: DETAIL_LINES,
        ..area
    };
    if let Some(line) = place.and_then(|place| lines.get(place)) {
        draw_details(painter, about, line, app);
    } else {
        let text = format!(
            "{} of {} nodes; select one with the arrow keys",
            shown.len(),
            lines.len()
        );
        painter.draw_text(about.x, about.y + 1, about.width, &text, painter.theme.dim);
    }
}

fn draw_details(painter: &mut Painter<'_>, area: Rect, line: &FleetLine<'_>, app: &FleetApp) {
    let numbers = line.gpus.iter();
    let numbers: Vec<String> = numbers
        .map(|row| app.metric.format_reading(line.rows, *row))
        .collect();
    let parts = [
        (line.safe_name(), painter.theme.strong),
        (
            format!("  {}: {}", app.metric.label(), numbers.join(" ")),
            painter.theme.plain,
        ),
        (
            format!("  {}", line.format_problems()),
            painter.theme.notice,
        ),
    ];
    painter.draw_pieces(area.x, area.y, area.width, &parts);
    let (memory, power) = (format_memory(&line.sum), format_power(&line.sum));
    let text = format!("{memory} GiB  {power}  {}", line.list_users().join(" "));
    painter.draw_text(area.x, area.y + 1, area.width, &text, painter.theme.dim);
}
