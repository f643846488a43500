//! All that the fleet knows of the selected node, until it is shown live, or why it is not.

use gpumon_probe::untrusted::escaped;
use ratatui::layout::Rect;

use super::app::FleetApp;
use crate::{
    fleet::{
        nodes::{Sort, nodes},
        rows::{Measured, Rows},
        text::{condition, memory, owner, troubles, use_of, watts},
    },
    top::{
        painter::Painter,
        text::{left, right, wrap},
    },
};

const BAR: u16 = 12;

pub(super) fn draw(painter: &mut Painter<'_>, area: Rect, rows: &Rows<'_>, app: &FleetApp) {
    // Of all its GPUs, whatever the filter leaves out.
    let selected = app.selected.as_deref().unwrap_or_default();
    let all = nodes(rows, None, Sort::Name);
    let sum = all.iter().find(|sum| {
        rows.fleet
            .nodes
            .name
            .get(sum.node)
            .is_some_and(|name| name == selected)
    });
    let (theme, name) = (painter.theme, escaped(selected));
    let Some(sum) = sum else {
        let text = format!("{name} is no longer part of the fleet. Press esc to go back.");
        painter.text(area.x, area.y, area.width, &text, theme.notice);
        return;
    };
    let troubles = troubles(rows, sum).join("; ");
    let style = if sum.rank <= 2 {
        theme.alarm
    } else {
        theme.notice
    };
    painter.line(
        area.x,
        area.y,
        area.width,
        &[
            (&*name, theme.strong),
            ("  ", theme.plain),
            (&*troubles, style),
        ],
    );
    let opening = "Opening its live stream...".to_owned();
    let (live, style) = match &app.node {
        Some(_) => (opening, theme.dim),
        None => (escaped(&app.refusal), theme.notice),
    };
    let live = wrap(&live, area.width.into());
    let mut y = area.y + 2;
    let last = area.bottom().saturating_sub(live.len() as u16 + 1);
    for row in &sum.rows {
        if y >= last {
            break;
        }
        gpu(
            painter,
            Rect {
                y,
                height: 1,
                ..area
            },
            rows,
            *row,
        );
        y += 1;
        let remarks: Vec<String> = rows
            .conditions(*row)
            .iter()
            .map(|one| condition(&one.kind))
            .collect();
        if !remarks.is_empty() && y < last {
            painter.text(
                area.x + 3,
                y,
                area.width.saturating_sub(3),
                &remarks.join(", "),
                theme.notice,
            );
            y += 1;
        }
    }
    if sum.rows.is_empty() {
        painter.text(area.x, y, area.width, "No GPU of it is listed.", theme.dim);
    }
    for (y, line) in (last + 1..area.bottom()).zip(&live) {
        painter.text(area.x, y, area.width, line, style);
    }
}

fn gpu(painter: &mut Painter<'_>, area: Rect, rows: &Rows<'_>, row: usize) {
    let theme = painter.theme;
    let read = |measured| rows.reading(measured, row);
    let index = if rows.is_by_gpu() {
        rows.fleet.gpus.index[row].to_string()
    } else {
        "all".to_owned()
    };
    let busy = read(Measured::Utilization);
    let percent = busy.map_or_else(|| "-".to_owned(), |busy| format!("{busy:.0} %"));
    let mut x =
        area.x + painter.text(area.x, area.y, area.width, &right(&index, 3), theme.strong) + 1;
    painter.bar(
        x,
        area.y,
        BAR,
        busy.map(|busy| busy / 100.0),
        theme.utilization,
    );
    x += BAR + 1;
    let used = memory(read(Measured::MemoryUsed), read(Measured::MemoryTotal));
    let owners: Vec<String> = rows.owners(row).map(owner).collect();
    let celsius = read(Measured::Temperature)
        .map_or_else(|| "-".to_owned(), |celsius| format!("{celsius:.0} C"));
    let parts = [
        (right(&percent, 6), theme.utilization),
        (right(&format!("{used} GiB"), 16), theme.memory),
        (
            right(
                &read(Measured::Power).map_or_else(|| "-".to_owned(), watts),
                8,
            ),
            theme.power,
        ),
        (right(&celsius, 6), theme.temperature),
        (format!("  {}", left(&use_of(rows, row), 12)), theme.plain),
        (format!(" {}", owners.join(", ")), theme.dim),
    ];
    painter.line(x, area.y, area.right().saturating_sub(x), &parts);
}
