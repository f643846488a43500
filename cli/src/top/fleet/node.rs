//! The fleet's data about the selected node. It is shown until the node's live screen is ready, or
//! together with the reason why the live screen cannot be shown.

use gpumon_fleet::{Rows, model::UTILIZATION};
use gpumon_probe::untrusted::escape_untrusted;
use ratatui::layout::Rect;

use super::app::FleetApp;
use crate::{
    fleet::{
        nodes::{FleetLine, Sort, list_nodes},
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

const BAR_WIDTH: u16 = 12;

pub(super) fn draw_node(painter: &mut Painter<'_>, area: Rect, rows: &Rows<'_>, app: &FleetApp) {
    // All GPUs of the node are shown, including those that the filter excludes.
    let selected = app.selected.as_deref().unwrap_or_default();
    let all = list_nodes(rows, None, Sort::Name);
    let mut all = all.iter();
    let (theme, name) = (painter.theme, escape_untrusted(selected));
    let Some(line) = all.find(|line| rows.node_name(line.node) == selected) else {
        let text = format!("{name} is no longer part of the fleet. Press esc to go back.");
        painter.draw_text(area.x, area.y, area.width, &text, theme.notice);
        return;
    };
    let troubles = line.format_problems();
    let style = if line.is_alarming() {
        theme.alarm
    } else {
        theme.notice
    };
    painter.draw_pieces(
        area.x,
        area.y,
        area.width,
        &[
            (&*name, theme.strong),
            ("  ", theme.plain),
            (&*troubles, style),
        ],
    );
    let opening = "Opening the node's live stream...".to_owned();
    let (text, style) = match &app.node {
        Some(_) => (opening, theme.dim),
        None => (escape_untrusted(&app.refusal), theme.notice),
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
        draw_gpu(painter, place, rows, *row);
        y += 1;
        let remarks = format_conditions(rows, *row);
        if !remarks.is_empty() && y < last {
            let room = area.width.saturating_sub(3);
            painter.draw_text(area.x + 3, y, room, &remarks, theme.notice);
            y += 1;
        }
    }
    if line.gpus.is_empty() {
        painter.draw_text(
            area.x,
            y,
            area.width,
            "No GPUs of this node are listed.",
            theme.dim,
        );
    }
    for (y, line) in (last + 1..area.bottom()).zip(&opened) {
        painter.draw_text(area.x, y, area.width, line, style);
    }
}

fn draw_gpu(painter: &mut Painter<'_>, area: Rect, rows: &Rows<'_>, row: usize) {
    let theme = painter.theme;
    let FleetLine { sum, .. } = FleetLine::from_gpu(rows, row);
    let with_unit = |text: String, unit: &str| {
        if text == ABSENT {
            text
        } else {
            format!("{text} {unit}")
        }
    };
    let index = if rows.lists_gpus() {
        rows.fleet.gpus.index[row].to_string()
    } else {
        "all".to_owned()
    };
    let mut x = area.x
        + painter.draw_text(
            area.x,
            area.y,
            area.width,
            &align_right(&index, 3),
            theme.strong,
        )
        + 1;
    let share = sum.value(UTILIZATION).map(|busy| busy / 100.0);
    painter.draw_bar(x, area.y, BAR_WIDTH, share, theme.utilization);
    x += BAR_WIDTH + 1;
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
    painter.draw_pieces(x, area.y, area.right().saturating_sub(x), &parts);
}
