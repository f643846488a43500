//! The list of nodes. Each line shows a node's GPUs as cells, the node's totals, and its problems.

use ratatui::layout::Rect;
use unicode_width::UnicodeWidthStr;

use super::{
    app::{FleetApp, NodeCapacity},
    cell::{cell_position as place_of, count_cells, draw_cell},
};
use crate::{
    fleet::{
        nodes::FleetLine,
        text::{format_memory, format_power, format_temperature, format_utilization},
    },
    terminal::columns::{Part, choose_parts},
    top::{
        painter::Painter,
        text::{ABSENT, align_left, align_right, cut},
    },
};

/// The width of a GPU's cell in the list, including a gap of one column.
const CELL_WIDTH: usize = 4;

/// The minimum width for a node's problems and users. If less space remains, some numbers are
/// omitted.
const MIN_REMARKS_WIDTH: usize = 14;

/// The maximum width of a node's name, and the maximum number of cells per line.
const MAX_NAME_WIDTH: usize = 28;
pub(super) const MAX_CELLS: usize = 16;

pub(super) fn draw_list(
    painter: &mut Painter<'_>,
    area: Rect,
    lines: &[FleetLine<'_>],
    app: &mut FleetApp,
) {
    let room = usize::from(area.height.saturating_sub(1)).max(1);
    app.room = NodeCapacity {
        nodes: room,
        in_a_row: 1,
    };
    let place = app.selected_position(lines);
    app.first = find_first_visible(app.first, place, room, lines.len());
    let shown = &lines[app.first..(app.first + room).min(lines.len())];
    let names = shown.iter().map(|line| line.safe_name().width()).max();
    let names = names.unwrap_or(4).clamp(4, MAX_NAME_WIDTH);
    let cells = count_cells(shown, MAX_CELLS)
        .min(usize::from(area.width).saturating_sub(names + 2) / CELL_WIDTH)
        .max(1);
    let taken = names + 1 + cells * CELL_WIDTH;
    let numbers = count_fitting_numbers(
        usize::from(area.width).saturating_sub(taken + 2 + MIN_REMARKS_WIDTH),
    );
    draw_heading(
        painter,
        area,
        names,
        taken,
        numbers,
        (app.first, shown.len(), lines.len()),
    );
    for (y, line) in (area.y + 1..).zip(shown) {
        let is_selected = place.is_some_and(|place| lines[place].node == line.node);
        let style = if line.is_alarming() {
            painter.theme.alarm
        } else {
            painter.theme.plain
        };
        let name = align_left(&cut(&line.safe_name(), names), names);
        painter.draw_text(area.x, y, area.width, &name, style);
        let rows = line.rows;
        for row in line.gpus.iter().filter(|row| place_of(rows, **row) < cells) {
            let x = area.x + (names + 1 + place_of(rows, *row) * CELL_WIDTH) as u16;
            let (symbol, style) = draw_cell(rows, *row, app.metric, painter.theme, painter.glyphs);
            // For the selected node, the cells contain numbers instead of shades.
            let text = if is_selected {
                align_right(&app.metric.format_reading(rows, *row), CELL_WIDTH - 1)
            } else {
                symbol.to_string().repeat(CELL_WIDTH - 1)
            };
            painter.draw_text(x, y, CELL_WIDTH as u16 - 1, &text, style);
        }
        let x = area.x + taken as u16;
        if line.gpus.iter().any(|row| place_of(rows, *row) >= cells) {
            painter.draw_text(x.saturating_sub(1), y, 1, "+", painter.theme.dim);
        }
        let row = Rect {
            y,
            height: 1,
            ..area
        };
        let rest = Rect {
            x,
            width: area.right().saturating_sub(x),
            ..row
        };
        draw_node_details(painter, rest, line, numbers);
        if is_selected {
            let width = names as u16;
            painter.highlight(Rect { width, ..row }, painter.theme.selected);
        }
        let name = rows.node_name(line.node).to_owned();
        app.hits.push((row, name));
    }
}

/// Returns the index of the first visible node. It differs from `before` only as far as needed to
/// make the node at `place` visible.
pub(super) fn find_first_visible(
    before: usize,
    place: Option<usize>,
    room: usize,
    all: usize,
) -> usize {
    let last = all.saturating_sub(room);
    place
        .map_or(before, |place| {
            before.clamp((place + 1).saturating_sub(room), place)
        })
        .min(last)
}

type NumberColumn = (&'static str, usize, fn(&FleetLine<'_>) -> String);

/// The numbers shown for a node, with their widths, most important first.
const NUMBER_COLUMNS: [NumberColumn; 4] = [
    ("util", 5, |line| match format_utilization(&line.sum) {
        absent if absent == ABSENT => absent,
        percent => percent + "%",
    }),
    ("memory GiB", 12, |line| format_memory(&line.sum)),
    ("power", 8, |line| format_power(&line.sum)),
    ("max C", 6, |line| format_temperature(&line.sum)),
];

/// Returns how many of the numbers fit into `columns` columns.
fn count_fitting_numbers(columns: usize) -> usize {
    let parts = (0..)
        .zip(&NUMBER_COLUMNS)
        .map(|(rank, (_, width, _))| Part {
            width: *width,
            rank,
            rest: 0,
        });
    let fits = choose_parts(&parts.collect::<Vec<_>>(), 0, columns);
    fits.into_iter().filter(|fits| *fits).count()
}

fn draw_heading(
    painter: &mut Painter<'_>,
    area: Rect,
    names: usize,
    taken: usize,
    numbers: usize,
    (first, shown, all): (usize, usize, usize),
) {
    let dim = painter.theme.dim;
    painter.draw_text(area.x, area.y, area.width, "node", dim);
    painter.draw_text(
        area.x + names as u16 + 1,
        area.y,
        area.width,
        "GPU 0..",
        dim,
    );
    let mut x = area.x + taken as u16;
    for (text, width, _) in &NUMBER_COLUMNS[..numbers] {
        painter.draw_text(
            x,
            area.y,
            area.right().saturating_sub(x),
            &align_right(text, *width),
            dim,
        );
        x += *width as u16;
    }
    let which = format!("{} to {} of {all}", first + 1, first + shown);
    let room = area.right().saturating_sub(x + 2);
    if all > shown && which.width() <= room.into() {
        painter.draw_text_right(x + 2, area.y, room, &which, dim);
    }
}

fn draw_node_details(painter: &mut Painter<'_>, area: Rect, line: &FleetLine<'_>, numbers: usize) {
    let mut x = area.x;
    for (_, width, text) in &NUMBER_COLUMNS[..numbers] {
        let room = area.right().saturating_sub(x);
        let text = align_right(&text(line), *width);
        painter.draw_text(x, area.y, room, &text, painter.theme.plain);
        x += *width as u16;
    }
    x += 2;
    let troubles = line.format_problems();
    let gap = if troubles.is_empty() { "" } else { "  " };
    let style = if line.is_alarming() {
        painter.theme.alarm
    } else {
        painter.theme.notice
    };
    let users = line.list_users().join(" ");
    let parts = [
        (&*troubles, style),
        (gap, style),
        (&*users, painter.theme.dim),
    ];
    painter.draw_pieces(x, area.y, area.right().saturating_sub(x), &parts);
}
