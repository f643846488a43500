//! A line per node: its GPUs as cells, what they come to, and what is wrong.

use gpumon_probe::untrusted::escaped;
use ratatui::layout::Rect;
use unicode_width::UnicodeWidthStr;

use super::{
    app::{FleetApp, Room},
    cell::{cell, cells, place as place_of},
};
use crate::{
    fleet::{
        nodes::NodeSum,
        rows::Rows,
        text::{memory, troubles, watts, whole},
    },
    top::{
        painter::Painter,
        text::{cut, left, right},
    },
};

/// Columns of a GPU, with one between them.
const CELL: usize = 4;

/// Columns of what is wrong with a node, and of who uses it, below which numbers are left out.
const REMARKS: usize = 14;

/// The widest that a name may be, and the most cells of a line.
const LONGEST_NAME: usize = 28;
const MOST_CELLS: usize = 16;

pub(super) fn draw(
    painter: &mut Painter<'_>,
    area: Rect,
    rows: &Rows<'_>,
    sums: &[NodeSum],
    app: &mut FleetApp,
) {
    let room = usize::from(area.height.saturating_sub(1)).max(1);
    app.room = Room {
        nodes: room,
        in_a_row: 1,
    };
    let place = app.place(rows, sums);
    app.first = first(app.first, place, room, sums.len());
    let shown = &sums[app.first..(app.first + room).min(sums.len())];
    let name = |sum: &NodeSum| {
        escaped(
            rows.fleet
                .nodes
                .name
                .get(sum.node)
                .map_or("", String::as_str),
        )
    };
    let names = shown
        .iter()
        .map(|sum| name(sum).width())
        .max()
        .unwrap_or(4)
        .clamp(4, LONGEST_NAME);
    let cells = cells(rows, shown, MOST_CELLS)
        .min(usize::from(area.width).saturating_sub(names + 2) / CELL)
        .max(1);
    let taken = names + 1 + cells * CELL;
    let numbers = numbers(usize::from(area.width).saturating_sub(taken + 2 + REMARKS));
    heading(
        painter,
        area,
        names,
        taken,
        numbers,
        (app.first, shown.len(), sums.len()),
    );
    for (line, sum) in (1..).zip(shown) {
        let y = area.y + line;
        let is_selected = place.is_some_and(|place| sums[place].node == sum.node);
        let style = if sum.rank <= 2 {
            painter.theme.alarm
        } else {
            painter.theme.plain
        };
        painter.text(
            area.x,
            y,
            area.width,
            &left(&cut(&name(sum), names), names),
            style,
        );
        for row in sum.rows.iter().filter(|row| place_of(rows, **row) < cells) {
            let x = area.x + (names + 1 + place_of(rows, *row) * CELL) as u16;
            let (symbol, style) = cell(rows, *row, app.metric, painter.theme, painter.glyphs);
            // The selected line tells the numbers.
            if is_selected {
                painter.text(
                    x,
                    y,
                    CELL as u16 - 1,
                    &right(&app.metric.number(rows, *row), CELL - 1),
                    style,
                );
            } else {
                painter.text(
                    x,
                    y,
                    CELL as u16 - 1,
                    &symbol.to_string().repeat(CELL - 1),
                    style,
                );
            }
        }
        let x = area.x + taken as u16;
        if sum.rows.iter().any(|row| place_of(rows, *row) >= cells) {
            painter.text(x.saturating_sub(1), y, 1, "+", painter.theme.dim);
        }
        about(
            painter,
            Rect {
                x,
                y,
                width: area.right().saturating_sub(x),
                height: 1,
            },
            rows,
            sum,
            numbers,
        );
        let line = Rect {
            y,
            height: 1,
            ..area
        };
        if is_selected {
            painter.highlight(
                Rect {
                    width: names as u16,
                    ..line
                },
                painter.theme.selected,
            );
        }
        app.hits.push((
            line,
            rows.fleet
                .nodes
                .name
                .get(sum.node)
                .cloned()
                .unwrap_or_default(),
        ));
    }
}

/// Keeps what is selected in view.
pub(super) fn first(before: usize, place: Option<usize>, room: usize, all: usize) -> usize {
    let last = all.saturating_sub(room);
    place
        .map_or(before, |place| {
            before.clamp((place + 1).saturating_sub(room), place)
        })
        .min(last)
}

/// What a node comes to, the most telling first.
const NUMBERS: [(&str, usize); 4] = [("util", 5), ("memory GiB", 12), ("power", 8), ("max C", 6)];

/// How many of them have room in so many columns.
fn numbers(room: usize) -> usize {
    let ends = NUMBERS.iter().scan(0, |end, (_, width)| {
        *end += width;
        Some(*end)
    });
    ends.take_while(|end| *end <= room).count().max(1)
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
    for (text, width) in &NUMBERS[..numbers] {
        painter.text(
            x,
            area.y,
            area.right().saturating_sub(x),
            &right(text, *width),
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

fn about(painter: &mut Painter<'_>, area: Rect, rows: &Rows<'_>, sum: &NodeSum, numbers: usize) {
    let cells = [
        sum.utilization
            .map_or_else(|| "-".to_owned(), |percent| format!("{percent:.0}%")),
        memory(sum.memory_used, sum.memory_total),
        sum.power.map_or_else(|| "-".to_owned(), watts),
        whole(sum.temperature),
    ];
    let mut x = area.x;
    for (text, (_, width)) in cells.iter().zip(&NUMBERS[..numbers]) {
        painter.text(
            x,
            area.y,
            area.right().saturating_sub(x),
            &right(text, *width),
            painter.theme.plain,
        );
        x += *width as u16;
    }
    x += 2;
    let troubles = troubles(rows, sum).join("; ");
    let gap = if troubles.is_empty() { "" } else { "  " };
    let users = sum
        .users(rows)
        .into_iter()
        .map(escaped)
        .collect::<Vec<_>>()
        .join(" ");
    let style = if sum.rank <= 2 {
        painter.theme.alarm
    } else {
        painter.theme.notice
    };
    let parts = [
        (&*troubles, style),
        (gap, style),
        (&*users, painter.theme.dim),
    ];
    painter.line(x, area.y, area.right().saturating_sub(x), &parts);
}
