//! As many nodes as there is room for, each GPU as one cell, and below them the selected one.

use gpumon_probe::untrusted::escaped;
use ratatui::layout::Rect;

use super::{
    app::{FleetApp, Room},
    cell::{cell, cells, place as place_of},
    list::first,
};
use crate::{
    fleet::{
        nodes::NodeSum,
        rows::Rows,
        text::{memory, troubles, watts},
    },
    top::painter::Painter,
};

/// Cells of a node; those that it has more are left out.
const MOST_CELLS: usize = 16;

/// Lines about the selected node.
const ABOUT: u16 = 2;

pub(super) fn draw(
    painter: &mut Painter<'_>,
    area: Rect,
    rows: &Rows<'_>,
    sums: &[NodeSum],
    app: &mut FleetApp,
) {
    let cells = cells(rows, sums, MOST_CELLS);
    // One column before each, for what marks the selected one, and one behind the last.
    let in_a_row = usize::from(area.width.saturating_sub(1)) / (cells + 1);
    let lines = usize::from(area.height.saturating_sub(ABOUT));
    let (in_a_row, lines) = (in_a_row.max(1), lines.max(1));
    app.room = Room {
        nodes: in_a_row * lines,
        in_a_row,
    };
    let place = app.place(rows, sums);
    let many = sums.len().div_ceil(in_a_row);
    let line = first(
        app.first / in_a_row,
        place.map(|place| place / in_a_row),
        lines,
        many,
    );
    app.first = line * in_a_row;
    let shown = &sums[app.first.min(sums.len())..(app.first + app.room.nodes).min(sums.len())];
    for (at, sum) in shown.iter().enumerate() {
        let x = area.x + 1 + (at % in_a_row * (cells + 1)) as u16;
        let y = area.y + (at / in_a_row) as u16;
        for row in sum.rows.iter().filter(|row| place_of(rows, **row) < cells) {
            let (symbol, style) = cell(rows, *row, app.metric, painter.theme, painter.glyphs);
            painter.cell(x + place_of(rows, *row) as u16, y, symbol, style);
        }
        if sum.rows.is_empty() {
            painter.text(
                x,
                y,
                cells as u16,
                &"?".repeat(cells.min(sum.gpus.max(1) as usize)),
                painter.theme.alarm,
            );
        }
        let node = Rect {
            x,
            y,
            width: cells as u16,
            height: 1,
        };
        if place == Some(app.first + at) {
            painter.text(x - 1, y, 1, "[", painter.theme.strong);
            painter.text(x + cells as u16, y, 1, "]", painter.theme.strong);
        }
        app.hits.push((
            node,
            rows.fleet
                .nodes
                .name
                .get(sum.node)
                .cloned()
                .unwrap_or_default(),
        ));
    }
    let about = Rect {
        y: area.bottom().saturating_sub(ABOUT),
        height: ABOUT,
        ..area
    };
    if let Some(sum) = place.and_then(|place| sums.get(place)) {
        describe(painter, about, rows, sum, app);
    } else {
        let text = format!(
            "{} of {} nodes; select one with the arrow keys",
            shown.len(),
            sums.len()
        );
        painter.text(about.x, about.y + 1, about.width, &text, painter.theme.dim);
    }
}

fn describe(painter: &mut Painter<'_>, area: Rect, rows: &Rows<'_>, sum: &NodeSum, app: &FleetApp) {
    let name = escaped(
        rows.fleet
            .nodes
            .name
            .get(sum.node)
            .map_or("", String::as_str),
    );
    let numbers: Vec<String> = sum
        .rows
        .iter()
        .map(|row| app.metric.number(rows, *row))
        .collect();
    let parts = [
        (name, painter.theme.strong),
        (
            format!("  {}: {}", app.metric.label(), numbers.join(" ")),
            painter.theme.plain,
        ),
        (
            format!("  {}", troubles(rows, sum).join("; ")),
            painter.theme.notice,
        ),
    ];
    painter.line(area.x, area.y, area.width, &parts);
    let users = sum
        .users(rows)
        .into_iter()
        .map(escaped)
        .collect::<Vec<_>>()
        .join(" ");
    let power = sum.power.map(watts).unwrap_or_default();
    let text = format!(
        "{} GiB  {power}  {users}",
        memory(sum.memory_used, sum.memory_total)
    );
    painter.text(area.x, area.y + 1, area.width, &text, painter.theme.dim);
}
