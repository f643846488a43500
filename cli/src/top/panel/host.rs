//! The host: the view with charts of its metrics, and a line that is always shown.

use gpumon_probe::{
    model::{HostSample, Reading, fields::HOST_FIELDS},
    units::format_byte_size,
};
use ratatui::{
    layout::Rect,
    style::{Modifier, Style},
};

use crate::{
    describe::{self, LoadLevel},
    terminal::units::format_optional,
    top::{
        history::{ChartLine, MINUTE_MS},
        layout::{choose_grid, find_grid_field},
        metrics::{ChartUnit, HOST_METRICS},
        model::Model,
        painter::Painter,
        plot::Plot,
        state::State,
        text::{ABSENT, align_right, format_or_dash, format_percent, format_rate},
    },
};

/// Draws the view of as many charts as fit.
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
        let now = format_optional(metric.access.value(host), |value| {
            metric.unit.format(value, painter.glyphs)
        });
        let title = match (metric.label, limit) {
            ("CPU", _) => host
                .cpu
                .count
                .value()
                .map_or_else(|| "CPU".to_owned(), |count| format!("CPU, {count} threads")),
            ("RAM", Some(limit)) => format!("RAM of {}", format_byte_size(limit)),
            (label, _) => label.to_owned(),
        };
        let (span_ms, style) = (state.chart_span_ms(), metric.unit.style(painter.theme));
        let plot = Plot {
            title,
            now: vec![(now, style)],
            style,
            unit: metric.unit,
            limit,
            span_ms,
            end_ms: model.now_ms(),
            values: &|columns| model.read_line_values(ChartLine::Host(place), span_ms, columns),
            overlay: None,
            stack: None,
            reason: None,
            is_selected: true,
        };
        plot.draw(
            painter,
            find_grid_field(area, shape, (place - first) as u16),
        );
    }
}

// The line with CPU, RAM, load, disks, and network.

const PART_GAP: u16 = 2;
/// The maximum width of a rate, such as `1.24 GB/s`.
const RATE_WIDTH: usize = 9;
/// The width of a line that shows the traffic in each direction separately. It does not include the
/// value of RAM, whose width varies.
const WIDTH_WITH_DIRECTIONS: usize =
    "CPU 100 %  RAM   load 99.99  disk R 1.24 GB/s W 1.24 GB/s  net RX 1.24 GB/s TX 1.24 GB/s"
        .len();
/// The minimum width of a sparkline or a bar.
const MIN_GRAPH_WIDTH: u16 = 5;

/// Draws the host's line. If the line is too long, parts are omitted from the right.
pub(in crate::top) fn draw_host_line(
    painter: &mut Painter<'_>,
    area: Rect,
    model: &Model,
    state: &State,
) {
    let Some(host) = model.sample.as_ref().map(|sample| &sample.host) else {
        return;
    };
    let theme = painter.theme;
    let share = describe::used_memory_fraction(
        host.memory.used_bytes.value(),
        host.memory.total_bytes.value(),
    );
    let busy = host.cpu.busy_percent.value().map(|percent| percent / 100.0);
    let cpu_style =
        theme.choose_load_style(LoadLevel::from_share(busy, state.thresholds.utilization));
    let ram_style = theme.choose_load_style(LoadLevel::from_share(share, state.thresholds.memory));
    let (ram, ram_columns) = format_ram(host);
    let free = usize::from(area.width).checked_sub(WIDTH_WITH_DIRECTIONS + ram_columns);
    let drawn = free.map_or(0, |free| (free as u16 / 2).saturating_sub(1).min(40));
    let drawn = if drawn < MIN_GRAPH_WIDTH { 0 } else { drawn };
    let mut at = LineWriter {
        painter,
        area,
        x: area.x,
    };
    if at.write_part(
        "CPU",
        &format_percent(&host.cpu.busy_percent),
        "100 %".len(),
        cpu_style,
        drawn,
    ) && let Some(x) = at.take_graph_space(drawn)
        && let Some(metric) = HOST_METRICS
            .iter()
            .position(|metric| metric.id == "host.cpu.busy_percent")
    {
        let past = model.read_line_values(ChartLine::Host(metric), MINUTE_MS, drawn.into());
        let past = past
            .into_iter()
            .map(|value| value.map(|percent| percent / 100.0));
        at.painter
            .draw_sparkline(x, area.y, past, theme.utilization);
    }
    if at.write_part("RAM", &ram, ram_columns, ram_style, drawn)
        && let Some(x) = at.take_graph_space(drawn)
    {
        at.painter.draw_bar(
            x,
            area.y,
            drawn,
            share,
            ram_style.remove_modifier(Modifier::UNDERLINED),
        );
    }
    at.write_part(
        "load",
        &format_or_dash(&host.cpu.load_1m, |load| format!("{load:.2}")),
        "99.99".len(),
        theme.plain,
        0,
    );
    let (disk, network) = (&host.disk, &host.network);
    for (label, ways) in [
        (
            "disk",
            [
                ("R", &disk.read_bytes_per_second),
                ("W", &disk.written_bytes_per_second),
            ],
        ),
        (
            "net",
            [
                ("RX", &network.received_bytes_per_second),
                ("TX", &network.sent_bytes_per_second),
            ],
        ),
    ] {
        if free.is_some() {
            let ways = ways.map(|(way, reading)| {
                format!(
                    "{way} {}",
                    align_right(
                        &format_or_dash(reading, |bytes| format_rate(*bytes)),
                        RATE_WIDTH
                    )
                )
            });
            at.write_part(label, &ways.join(" "), 0, theme.traffic, 0);
        } else {
            at.write_part(
                label,
                &format_total_rate(ways[0].1, ways[1].1),
                RATE_WIDTH,
                theme.traffic,
                0,
            );
        }
    }
}

/// Formats RAM usage, such as `41.2/128 GiB`, and returns it with its maximum width.
fn format_ram(host: &HostSample) -> (String, usize) {
    match (
        host.memory.used_bytes.value(),
        host.memory.total_bytes.value(),
    ) {
        (Some(used), Some(total)) => {
            let of_all = |bytes: u64| describe::format_used_of_total(bytes, Some(*total));
            (of_all(*used), of_all(*total).len())
        }
        _ => (ABSENT.to_owned(), ABSENT.len()),
    }
}

/// Formats the sum of a rate in both directions.
fn format_total_rate(one: &Reading<f64>, other: &Reading<f64>) -> String {
    format_optional(one.value().zip(other.value()), |(one, other)| {
        format_rate(one + other)
    })
}

struct LineWriter<'a, 'b> {
    painter: &'a mut Painter<'b>,
    area: Rect,
    x: u16,
}

impl LineWriter<'_, '_> {
    /// Writes a label and a value, for which `columns` columns are reserved. If there is not enough
    /// room for them and for a graph of `drawn` columns, writes nothing and returns `false`.
    fn write_part(
        &mut self,
        label: &str,
        text: &str,
        columns: usize,
        style: Style,
        drawn: u16,
    ) -> bool {
        let before = if self.x > self.area.x { PART_GAP } else { 0 };
        let columns = columns.max(text.len());
        let taken = before + (label.len() + 1 + columns) as u16;
        if self.x + taken + drawn > self.area.right() {
            self.x = self.area.right();
            return false;
        }
        self.painter.draw_text(
            self.x + before,
            self.area.y,
            taken,
            label,
            self.painter.theme.dim,
        );
        self.x += taken;
        let style = if text == ABSENT {
            self.painter.theme.dim
        } else {
            style
        };
        self.painter.draw_text(
            self.x - text.len() as u16,
            self.area.y,
            text.len() as u16,
            text,
            style,
        );
        true
    }

    /// Reserves space for a graph of `columns` columns, and returns its position. Returns `None` if
    /// the graph has no columns.
    fn take_graph_space(&mut self, columns: u16) -> Option<u16> {
        let x = self.x + 1;
        self.x += if columns > 0 { columns + 1 } else { 0 };
        (columns > 0).then_some(x)
    }
}
