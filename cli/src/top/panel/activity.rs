//! The view of the activity of a GPU's units, as counted by the hardware.

use gpumon_probe::{
    model::{
        GpuSample, LimitSums,
        fields::{Field, GPU_FIELDS},
    },
    units::join_list,
};
use ratatui::{layout::Rect, style::Style};

use super::{StyledLine, draw_scroll_view};
use crate::{
    describe,
    terminal::units::format_optional,
    top::{
        history,
        metrics::METRICS,
        model::Model,
        painter::Painter,
        state::State,
        text::{align_left, align_right, make_printable, wrap},
        theme::Theme,
    },
};

/// Returns all activity fields of the catalog.
fn list_activity_fields() -> impl Iterator<Item = &'static Field> {
    GPU_FIELDS
        .iter()
        .filter(|field| field.id.starts_with("activity."))
}

pub(super) fn draw_activity(
    painter: &mut Painter<'_>,
    area: Rect,
    model: &Model,
    state: &State,
) -> u16 {
    let gpus = model.gpus();
    match (state.gpu.and_then(|gpu| model.find_gpu(gpu)), gpus) {
        (Some(gpu), _) | (None, [gpu]) => draw_single_gpu(painter, area, gpu, model, state),
        (None, gpus) => draw_all_gpus(painter, area, gpus, state),
    }
}

fn draw_single_gpu(
    painter: &mut Painter<'_>,
    area: Rect,
    gpu: &GpuSample,
    model: &Model,
    state: &State,
) -> u16 {
    let mut lines = list_limit_lines(painter, area, gpu, model);
    if let Some(reason) = gpu.activity.absence() {
        let text = format!("The activity of GPU {} is not known: {reason}", gpu.index);
        lines.push(vec![(text, painter.theme.dim)]);
        return draw_scroll_view(painter, area, None, &lines, state.view_scroll);
    }
    let label = 27;
    let drawn = usize::from(area.width).saturating_sub(label + 8);
    let spark = drawn / 2;
    lines.extend(list_activity_fields().map(|field| {
        let style = choose_field_style(field, painter.theme);
        let percent = field.access.value(gpu);
        let (full, empty) = format_bar(percent, drawn - spark, painter);
        let past = METRICS
            .iter()
            .position(|metric| metric.id == field.id)
            .map(|metric| {
                let values = model.read_line_values(
                    history::ChartLine::Gpu(gpu.index, metric),
                    state.chart_span_ms(),
                    spark.saturating_sub(1),
                );
                let shares = values.into_iter().map(|value| Some(value? / 100.0));
                painter.glyphs.draw_sparkline(shares)
            });
        vec![
            (align_left(field.label, label), painter.theme.plain),
            (align_right(&format_percent(percent), 6) + "  ", style),
            (full, style),
            (empty, painter.theme.dim),
            (" ".to_owned() + &past.unwrap_or_default(), style),
        ]
    }));
    draw_scroll_view(painter, area, None, &lines, state.view_scroll)
}

/// Returns what limits the GPU, with the shares of all causes and the advice, followed by an empty
/// line. Returns nothing if this is unknown or outdated.
fn list_limit_lines(
    painter: &Painter<'_>,
    area: Rect,
    gpu: &GpuSample,
    model: &Model,
) -> Vec<StyledLine> {
    let Some(limits) = describe::find_current_limits(gpu, model.now_ms()) else {
        return Vec::new();
    };
    let mut sums = LimitSums::default();
    sums.add(limits, limits.window_ms as f64);
    let shares = sums.summary().filter(|summary| summary.shares.len() > 1);
    let shares = shares.map(|summary| format!("Shares: {}", summary.shares_text()));
    let advice = Some(limits.advice.clone()).filter(|advice| !advice.is_empty());
    let (strong, plain) = (painter.theme.strong, painter.theme.plain);
    let texts = [
        (Some(limits.summary()), strong),
        (shares, plain),
        (advice, plain),
    ];
    let owners = limits.owners.iter().map(|owner| {
        let names: Vec<_> = owner
            .pids
            .iter()
            .map(|pid| describe_pid(gpu, *pid))
            .collect();
        let shares = owner.limits.shares_text();
        (Some(format!("{}: {shares}", join_list(&names))), plain)
    });
    let texts = texts
        .into_iter()
        .chain(owners)
        .filter_map(|(text, style)| Some((text?, style)));
    let lines = texts.flat_map(|(text, style)| {
        let lines = wrap(&make_printable(&text), area.width.into()).into_iter();
        lines.map(move |line| vec![(line, style)])
    });
    lines.chain([StyledLine::new()]).collect()
}

/// Returns the name of a process that uses the GPU, with its PID.
fn describe_pid(gpu: &GpuSample, pid: u32) -> String {
    let mut processes = gpu.processes.value().into_iter().flatten();
    let known = processes.find(|process| process.pid == pid);
    match known.and_then(|process| process.name.value()) {
        Some(name) => format!("{name} (PID {pid})"),
        None => format!("PID {pid}"),
    }
}

fn draw_all_gpus(painter: &mut Painter<'_>, area: Rect, gpus: &[GpuSample], state: &State) -> u16 {
    let columns: Vec<_> = list_activity_fields()
        .filter(|field| field.chart.is_some())
        .collect();
    let name = 6;
    let room = usize::from(area.width).saturating_sub(name) / columns.len();
    // Each cell contains a number with its unit. If there is room, a bar follows.
    let bars = room.saturating_sub(9).min(24);
    let bars = if bars < 4 { 0 } else { bars };
    let cell = (7 + if bars > 0 { bars + 1 } else { 0 }).min(room.max(7));
    let heading: StyledLine = std::iter::once((align_left("GPU", name), painter.theme.dim))
        .chain(columns.iter().map(|field| {
            (
                align_left(&align_right(&field.short_label.to_uppercase(), 7), cell),
                painter.theme.dim,
            )
        }))
        .collect();
    let lines: Vec<StyledLine> = gpus
        .iter()
        .map(|gpu| {
            let mut line = vec![(
                align_left(&align_right(&gpu.index.to_string(), 3), name),
                painter.theme.plain,
            )];
            if let Some(reason) = gpu.activity.absence() {
                line.push((reason.to_string(), painter.theme.dim));
                return line;
            }
            for field in &columns {
                let style = choose_field_style(field, painter.theme);
                let percent = field.access.value(gpu);
                line.push((align_right(&format_percent(percent), 7), style));
                if bars > 0 {
                    let (full, empty) = format_bar(percent, bars, painter);
                    line.extend([(" ".to_owned() + &full, style), (empty, painter.theme.dim)]);
                }
            }
            line
        })
        .collect();
    draw_scroll_view(painter, area, Some(&heading), &lines, state.view_scroll)
}

/// Returns the style of a field. Bandwidth has the color of memory, although it is a percentage.
fn choose_field_style(field: &Field, theme: &Theme) -> Style {
    if field.id == "activity.dram_bandwidth_percent" {
        theme.memory
    } else {
        theme.utilization
    }
}

fn format_percent(percent: Option<f64>) -> String {
    format_optional(percent, |percent| format!("{percent:.0} %"))
}

fn format_bar(percent: Option<f64>, columns: usize, painter: &Painter<'_>) -> (String, String) {
    percent.map_or_else(
        || (String::new(), " ".repeat(columns)),
        |percent| painter.glyphs.draw_bar(percent / 100.0, columns),
    )
}
