//! The fleet's data about the selected node, shown until its live screen is ready, or along with
//! the reason why it is not.

use gpumon_fleet::{Rows, model::UTILIZATION};
use gpumon_probe::untrusted::escaped;
use ratatui::layout::Rect;

use super::app::FleetApp;
use crate::{
    fleet::{
        nodes::{Line, Sort, list_nodes},
        text::{
            format_conditions, format_memory, format_owners, format_power, format_state,
            format_temperature, format_utilization,
        },
    },
    top::{
        painter::Painter,
        text::{ABSENT, align_left, align_right, wrap},
    },
};

const BAR: u16 = 12;

pub(super) fn draw(painter: &mut Painter<'_>, area: Rect, rows: &Rows<'_>, app: &FleetApp) {
    // All GPUs of the node are shown, even those that the filter hides.
    let selected = app.selected.as_deref().unwrap_or_default();
    let all = list_nodes(rows, None, Sort::Name);
    let mut all = all.iter();
    let (theme, name) = (painter.theme, escaped(selected));
    let Some(line) = all.find(|line| rows.node_name(line.node) == selected) else {
        let text = format!("{name} is no longer part of the fleet. Press esc to go back.");
        painter.text(area.x, area.y, area.width, &text, theme.notice);
        return;
    };
    let troubles = line.troubles();
    let style = if line.is_alarming() {
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
    let (text, style) = match &app.node {
        Some(_) => (opening, theme.dim),
        None => (escaped(&app.refusal), theme.notice),
    };
    let opened = wrap(&text, area.width.into());
    let mut y = area.y + 2;
    let last = area.bottom().saturating_sub(opened.len() as u16 + 1);
    for row in &line.gpus {
        if y >= last {
            break;
        }
        let place = Rect {
            y,
            height: 1,
            ..area
        };
        gpu(painter, place, rows, *row);
        y += 1;
        let remarks = format_conditions(rows, *row);
        if !remarks.is_empty() && y < last {
            let room = area.width.saturating_sub(3);
            painter.text(area.x + 3, y, room, &remarks, theme.notice);
            y += 1;
        }
    }
    if line.gpus.is_empty() {
        painter.text(area.x, y, area.width, "No GPU of it is listed.", theme.dim);
    }
    for (y, line) in (last + 1..area.bottom()).zip(&opened) {
        painter.text(area.x, y, area.width, line, style);
    }
}

fn gpu(painter: &mut Painter<'_>, area: Rect, rows: &Rows<'_>, row: usize) {
    let theme = painter.theme;
    let Line { sum, .. } = Line::of_gpu(rows, row);
    let with_unit = |text: String, unit: &str| {
        if text == ABSENT {
            text
        } else {
            format!("{text} {unit}")
        }
    };
    let index = if rows.is_by_gpu() {
        rows.fleet.gpus.index[row].to_string()
    } else {
        "all".to_owned()
    };
    let mut x = area.x
        + painter.text(
            area.x,
            area.y,
            area.width,
            &align_right(&index, 3),
            theme.strong,
        )
        + 1;
    let share = sum.value(UTILIZATION).map(|busy| busy / 100.0);
    painter.bar(x, area.y, BAR, share, theme.utilization);
    x += BAR + 1;
    let parts = [
        (
            align_right(&with_unit(format_utilization(&sum), "%"), 6),
            theme.utilization,
        ),
        (
            align_right(&format!("{} GiB", format_memory(&sum)), 16),
            theme.memory,
        ),
        (align_right(&format_power(&sum), 8), theme.power),
        (
            align_right(&with_unit(format_temperature(&sum), "C"), 6),
            theme.temperature,
        ),
        (
            format!("  {}", align_left(&format_state(rows, row), 12)),
            theme.plain,
        ),
        (format!(" {}", format_owners(rows, row)), theme.dim),
    ];
    painter.line(x, area.y, area.right().saturating_sub(x), &parts);
}
