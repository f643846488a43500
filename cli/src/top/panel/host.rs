//! The view of the host's details.

use gpumon_probe::{model::fields::HOST_FIELDS, units::format_byte_size};
use ratatui::layout::Rect;

use crate::top::{
    history::ChartLine,
    layout::{choose_grid, find_grid_field},
    metrics::{ChartUnit, HOST_METRICS},
    model::Model,
    painter::Painter,
    plot::Plot,
    state::State,
    text::ABSENT,
};

pub(super) fn draw_host(painter: &mut Painter<'_>, area: Rect, model: &Model, state: &State) {
    let Some(sample) = &model.sample else { return };
    let host = &sample.host;
    let Some(shape) = choose_grid(area, HOST_METRICS.len()) else {
        return;
    };
    let places = usize::from(shape.0 * shape.1);
    let first = state
        .view_scroll
        .min(HOST_METRICS.len().saturating_sub(places));
    for (place, metric) in HOST_METRICS.iter().enumerate().skip(first).take(places) {
        let limit = metric.limit_value(HOST_FIELDS, host, None);
        let now = metric.access.value(host).map_or_else(
            || ABSENT.to_owned(),
            |value| metric.unit.format(value, painter.glyphs),
        );
        let title = match (metric.label, limit) {
            ("CPU", _) => host
                .cpu
                .count
                .value()
                .map_or_else(|| "CPU".to_owned(), |count| format!("CPU, {count} threads")),
            ("RAM", Some(limit)) => format!("RAM of {}", format_byte_size(limit)),
            (label, _) => label.to_owned(),
        };
        let span_ms = state.span_ms();
        let plot = Plot {
            title,
            now: vec![(
                now,
                painter.theme.choose_meaning_style(metric.unit.meaning()),
            )],
            style: painter.theme.choose_meaning_style(metric.unit.meaning()),
            unit: metric.unit,
            limit,
            span_ms,
            end_ms: model.now_ms(),
            values: &|columns| model.read_line_values(ChartLine::Host(place), span_ms, columns),
            overlay: None,
            reason: None,
            is_selected: true,
        };
        plot.draw(
            painter,
            find_grid_field(area, shape, (place - first) as u16),
        );
    }
}
