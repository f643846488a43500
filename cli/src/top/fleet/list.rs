//! The list of nodes, one line for each: its GPUs as cells, their totals, and problems.

use ratatui::layout::Rect;
use unicode_width::UnicodeWidthStr;

use super::{
    app::{FleetApp, Room},
    cell::{cell, count_cells, place as place_of},
};
use crate::{
    fleet::{
        nodes::Line,
        text::{format_memory, format_power, format_temperature, format_utilization},
    },
    terminal::columns::{Part, choose},
    top::{
        painter::Painter,
        text::{ABSENT, align_left, align_right, cut},
    },
};

/// The width of a GPU in columns, including one column of space.
const CELL: usize = 4;

/// The minimum width for a node's problems and users. If less remains, numbers are omitted.
const REMARKS: usize = 14;

/// The maximum width of a name, and the maximum number of cells per line.
const LONGEST_NAME: usize = 28;
const MOST_CELLS: usize = 16;

pub(super) fn draw(painter: &mut Painter<'_>, area: Rect, lines: &[Line<'_>], app: &mut FleetApp) {
    let room = usize::from(area.height.saturating_sub(1)).max(1);
    app.room = Room {
        nodes: room,
        in_a_row: 1,
    };
    let place = app.place(lines);
    app.first = first(app.first, place, room, lines.len());
    let shown = &lines[app.first..(app.first + room).min(lines.len())];
    let names = shown.iter().map(|line| line.name().width()).max();
    let names = names.unwrap_or(4).clamp(4, LONGEST_NAME);
    let cells = count_cells(shown, MOST_CELLS)
        .min(usize::from(area.width).saturating_sub(names + 2) / CELL)
        .max(1);
    let taken = names + 1 + cells * CELL;
    let numbers = count_numbers(usize::from(area.width).saturating_sub(taken + 2 + REMARKS));
    heading(
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
        let name = align_left(&cut(&line.name(), names), names);
        painter.text(area.x, y, area.width, &name, style);
        let rows = line.rows;
        for row in line.gpus.iter().filter(|row| place_of(rows, **row) < cells) {
            let x = area.x + (names + 1 + place_of(rows, *row) * CELL) as u16;
            let (symbol, style) = cell(rows, *row, app.metric, painter.theme, painter.glyphs);
            // The selected line shows numbers instead of shades.
            let text = if is_selected {
                align_right(&app.metric.format_reading(rows, *row), CELL - 1)
            } else {
                symbol.to_string().repeat(CELL - 1)
            };
            painter.text(x, y, CELL as u16 - 1, &text, style);
        }
        let x = area.x + taken as u16;
        if line.gpus.iter().any(|row| place_of(rows, *row) >= cells) {
            painter.text(x.saturating_sub(1), y, 1, "+", painter.theme.dim);
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
        draw_about(painter, rest, line, numbers);
        if is_selected {
            let width = names as u16;
            painter.highlight(Rect { width, ..row }, painter.theme.selected);
        }
        let name = rows.node_name(line.node).to_owned();
        app.hits.push((row, name));
    }
}

/// Returns the first visible node such that the selected one is visible.
pub(super) fn first(before: usize, place: Option<usize>, room: usize, all: usize) -> usize {
    let last = all.saturating_sub(room);
    place
        .map_or(before, |place| {
            before.clamp((place + 1).saturating_sub(room), place)
        })
        .min(last)
}

type Number = (&'static str, usize, fn(&Line<'_>) -> String);

/// A node's numbers with their widths, the most important first.
const NUMBERS: [Number; 4] = [
    ("util", 5, |line| match format_utilization(&line.sum) {
        absent if absent == ABSENT => absent,
        percent => percent + "%",
    }),
    ("memory GiB", 12, |line| format_memory(&line.sum)),
    ("power", 8, |line| format_power(&line.sum)),
    ("max C", 6, |line| format_temperature(&line.sum)),
];

/// Returns how many of the numbers fit in this many columns.
fn count_numbers(columns: usize) -> usize {
    let parts = (0..).zip(&NUMBERS).map(|(rank, (_, width, _))| Part {
        width: *width,
        rank,
        rest: 0,
    });
    let fits = choose(&parts.collect::<Vec<_>>(), 0, columns);
    fits.into_iter().filter(|fits| *fits).count()
}

fn heading(
    painter: &mut Painter<'_>,
    area: Rect,
    names: usize,
    taken: usize,
    numbers: usize,
    (first, shown, all): (usize, usize, usize),
) {
    let dim = painter.theme.dim;
    painter.text(area.x, area.y, area.width, "node", dim);
    painter.text(
        area.x + names as u16 + 1,
        area.y,
        area.width,
        "GPU 0..",
        dim,
    );
    let mut x = area.x + taken as u16;
    for (text, width, _) in &NUMBERS[..numbers] {
        painter.text(
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
        painter.text_right(x + 2, area.y, room, &which, dim);
    }
}

fn draw_about(painter: &mut Painter<'_>, area: Rect, line: &Line<'_>, numbers: usize) {
    let mut x = area.x;
    for (_, width, text) in &NUMBERS[..numbers] {
        let room = area.right().saturating_sub(x);
        let text = align_right(&text(line), *width);
        painter.text(x, area.y, room, &text, painter.theme.plain);
        x += *width as u16;
    }
    x += 2;
    let troubles = line.troubles();
    let gap = if troubles.is_empty() { "" } else { "  " };
    let style = if line.is_alarming() {
        painter.theme.alarm
    } else {
        painter.theme.notice
    };
    let users = line.users().join(" ");
    let parts = [
        (&*troubles, style),
        (gap, style),
        (&*users, painter.theme.dim),
    ];
    painter.line(x, area.y, area.right().saturating_sub(x), &parts);
}
