//! The panels of the screen, one per file. This file contains the tabs with which the user selects
//! a view, and the scrollable text that several views show.

mod activity;
mod charts;
mod events;
mod footer;
mod gpus;
mod host;
mod links;
mod mig;
mod processes;
mod title;

use clap::ValueEnum as _;
use ratatui::{layout::Rect, style::Style};
use unicode_width::UnicodeWidthStr;

use super::{
    layout::View,
    metrics::metric_label,
    model::Model,
    painter::{Hit, Painter, StyledLine},
    state::State,
    text::format_chart_range,
};
use crate::terminal::{
    columns::{Column, Columns},
    line,
};

pub(super) use self::{
    footer::{
        Prompt, PromptPurpose, PromptResult, draw_footer, draw_keys, draw_notice, draw_prompt,
    },
    gpus::draw_gpus,
    host::draw_host_line,
    processes::draw_processes,
    title::{draw_banner, draw_title, find_silence_reason},
};

/// Draws the selected view, and returns the number of empty lines at its end.
pub(super) fn draw_view(
    painter: &mut Painter<'_>,
    area: Rect,
    model: &Model,
    state: &State,
) -> u16 {
    if area.height == 0 {
        return 0;
    }
    painter.add_clickable_area(area, Hit::Middle);
    match state.view {
        View::Activity => return activity::draw_activity(painter, area, model, state),
        View::Links => return links::draw_links(painter, area, model, state),
        View::Events => return events::draw_events(painter, area, model, state),
        View::Charts => charts::draw_charts(painter, area, model, state),
        View::Mig => mig::draw_mig(painter, area, model, state),
        View::Host => host::draw_host(painter, area, model, state),
    }
    0
}

/// Draws the tabs with the names of the views, and the subject of the selected view.
pub(super) fn draw_tabs(painter: &mut Painter<'_>, area: Rect, model: &Model, state: &State) {
    let mut x = area.x;
    for view in View::value_variants() {
        let title = format!(" {} ", view.title());
        let style = if *view == state.view {
            painter.theme.selected
        } else {
            painter.theme.dim
        };
        let taken = painter.draw_text(x, area.y, area.right().saturating_sub(x), &title, style);
        painter.add_clickable_area(
            Rect {
                x,
                width: taken,
                ..area
            },
            Hit::Tab(*view),
        );
        x += taken;
    }
    let about = describe_view(model, state);
    if x + 2 + about.width() as u16 <= area.right() {
        painter.draw_text_right(area.x, area.y, area.width, &about, painter.theme.dim);
    }
}

/// Describes the subject of the selected view, such as `all GPUs · Utilization · 2 min`.
fn describe_view(model: &Model, state: &State) -> String {
    let gpu = match state.gpu {
        Some(gpu) => format!("GPU {gpu}"),
        None => "all GPUs".to_owned(),
    };
    let range = format_chart_range(state.chart_span_ms());
    match state.view {
        View::Charts | View::Mig if state.gpu.is_none() && model.gpus().len() > 1 => {
            format!("{gpu} · {} · {range}", metric_label(state.shown_metric()))
        }
        View::Charts | View::Mig | View::Activity | View::Links => format!("{gpu} · {range}"),
        View::Host => range,
        View::Events => gpu,
    }
}

// Scrollable lines of text with a fixed heading.

/// Formats a table, and returns its heading and its lines.
fn format_table(
    painter: &Painter<'_>,
    area: Rect,
    columns: &[Column],
    rows: &[Vec<line::Line<Style>>],
) -> (StyledLine, Vec<StyledLine>) {
    let (plain, dim) = (painter.theme.plain, painter.theme.dim);
    let columns = Columns::new(columns, rows, Some(area.width.into()));
    let line = |row: &Vec<_>| columns.join_pieces(row, plain).into_pieces();
    let lines = rows.iter().map(line).collect();
    (vec![(columns.plain_headings(), dim)], lines)
}

/// Draws as many lines as fit, starting at `scroll`, and the number of hidden lines above and
/// below. Returns the number of empty lines in the area.
fn draw_scroll_view(
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
