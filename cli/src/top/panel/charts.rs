//! The view of charts: one metric of all GPUs, or several metrics of one GPU.

use std::iter;

use gpumon_probe::model::{
    GpuSample, LimitClass,
    fields::{GPU_FIELDS, Unit},
};
use ratatui::layout::Rect;

use crate::{
    describe,
    terminal::units::format_optional,
    top::{
        history::ChartLine,
        layout::{choose_grid, find_filled_grid_field, find_grid_field},
        metrics::{ChartUnit, METRICS, find_metric_position, is_limit, metric_label},
        model::Model,
        painter::{Hit, Painter},
        plot::{Overlay, Plot, Stack, StackPart},
        state::State,
        text::ABSENT,
    },
};

/// The minimum width of a chart that contains phrases in addition to numbers.
const MIN_WIDTH_WITH_WORDS: u16 = 36;

pub(super) fn draw_charts(painter: &mut Painter<'_>, area: Rect, model: &Model, state: &State) {
    let gpus = model.gpus();
    let one = model.selected_or_only_gpu(state.gpu);
    let charts: Vec<(&GpuSample, usize)> = match one {
        Some(gpu) => model
            .find_gpu(gpu)
            .into_iter()
            .flat_map(|gpu| list_metrics(gpu, state).map(move |metric| (gpu, metric)))
            .collect(),
        None => gpus.iter().map(|gpu| (gpu, state.shown_metric())).collect(),
    };
    let Some(shape) = choose_grid(area, charts.len()) else {
        return;
    };
    let places = usize::from(shape.0 * shape.1);
    let shared = one
        .is_none()
        .then(|| SharedAxis::new(gpus, state.shown_metric(), model, state.chart_span_ms()));
    let first = state.view_scroll.min(charts.len().saturating_sub(places));
    for (place, (gpu, metric)) in charts.iter().skip(first).take(places).enumerate() {
        let field = if one.is_some() {
            find_filled_grid_field(area, shape, place as u16, charts.len() as u16)
        } else {
            find_grid_field(area, shape, place as u16)
        };
        draw_chart(painter, field, gpu, *metric, shared, model, state);
        if one.is_none() {
            painter.add_clickable_area(field, Hit::Gpu(gpu.index));
        }
    }
}

/// Returns the metrics that have a separate chart.
fn list_metrics(gpu: &GpuSample, state: &State) -> impl Iterator<Item = usize> {
    let over = state
        .metrics
        .iter()
        .find_map(|metric| find_memory_overlay(gpu, *metric, state))
        .map(|(memory, _)| memory);
    state
        .metrics
        .iter()
        .copied()
        .filter(move |metric| Some(*metric) != over)
}

/// If memory is drawn as a line in the chart of `metric`, returns the memory metric and the total
/// memory.
fn find_memory_overlay(gpu: &GpuSample, metric: usize, state: &State) -> Option<(usize, f64)> {
    let memory = find_metric_position("memory").filter(|memory| state.metrics.contains(memory))?;
    let total = gpu.memory.total_bytes.value().filter(|total| **total > 0)?;
    (Some(metric) == find_metric_position("utilization")).then_some((memory, *total as f64))
}

/// The upper end of the axis. The charts of all GPUs share it, so that they can be compared. `None`
/// if the unit's axis has a fixed end.
#[derive(Clone, Copy)]
struct SharedAxis(Option<f64>);

impl SharedAxis {
    /// The number of columns into which a history is divided to find its largest value. No chart
    /// has more columns. With fewer columns, each value would be a mean over a longer time, and the
    /// largest value would be too low.
    const COLUMNS: usize = 600;

    fn new(gpus: &[GpuSample], metric: usize, model: &Model, span_ms: u64) -> Self {
        let unit = METRICS[metric].unit;
        let limits: Option<Vec<f64>> = gpus
            .iter()
            .map(|gpu| find_axis_limit(gpu, metric, model))
            .collect();
        let largest = |values: &mut dyn Iterator<Item = f64>| values.fold(0.0, f64::max);
        Self(match limits {
            Some(limits) => Some(largest(&mut limits.into_iter())),
            None if matches!(unit, Unit::Percent | Unit::Celsius) => None,
            None => {
                let lines = gpus.iter().map(|gpu| {
                    model.read_line_values(
                        ChartLine::Gpu(gpu.index, metric),
                        span_ms,
                        Self::COLUMNS,
                    )
                });
                Some(unit.axis_end(largest(&mut lines.flatten().flatten())))
            }
        })
    }
}

fn find_axis_limit(gpu: &GpuSample, metric: usize, model: &Model) -> Option<f64> {
    METRICS[metric].limit_value(GPU_FIELDS, gpu, model.find_board(gpu.index))
}

fn draw_chart(
    painter: &mut Painter<'_>,
    area: Rect,
    gpu: &GpuSample,
    metric: usize,
    shared: Option<SharedAxis>,
    model: &Model,
    state: &State,
) {
    if is_limit(metric) {
        draw_limits(painter, area, gpu, shared.is_some(), model, state);
        return;
    }
    let memory = find_memory_overlay(gpu, metric, state);
    // For a GPU with MIG devices, the driver does not report utilization, so the SM activity
    // counted by the hardware is shown instead.
    let is_other =
        METRICS[metric].id == "utilization.gpu_percent" && describe::shows_sm_activity(gpu);
    let metric = find_metric_position("sm")
        .filter(|_| is_other)
        .unwrap_or(metric);
    let known = METRICS[metric];
    let (span_ms, line) = (state.chart_span_ms(), ChartLine::Gpu(gpu.index, metric));
    let limit = shared.map_or_else(|| find_axis_limit(gpu, metric, model), |axis| axis.0);
    let reading = (known.access.read)(gpu);
    let now = match reading {
        Ok(_) if is_other => describe::format_utilization(gpu),
        Ok(value) => known.unit.format(value, painter.glyphs),
        Err(_) => ABSENT.to_owned(),
    };
    let style = known.unit.style(painter.theme);
    let mut values_now = vec![(now, style)];
    if let Some((_, total)) = memory {
        let used = gpu
            .memory
            .used_bytes
            .value()
            .map(|used| 100.0 * *used as f64 / total);
        let used = format_optional(used, |used| Unit::Percent.format(used, painter.glyphs));
        let word = if area.width >= MIN_WIDTH_WITH_WORDS {
            "memory "
        } else {
            ""
        };
        values_now.push((format!("  {word}{used}"), painter.theme.memory));
    }
    let memory_line = |columns| {
        let Some((metric, total)) = memory else {
            return Vec::new();
        };
        let past = model.read_line_values(ChartLine::Gpu(gpu.index, metric), span_ms, columns);
        past.into_iter()
            .map(|used| used.map(|used| 100.0 * used / total))
            .collect()
    };
    let title = match (shared.is_some(), memory) {
        (true, _) => format!("{} {}", gpu.index, model.gpu_name(gpu.index)),
        (false, Some(_)) => format!("{}, memory", known.label),
        (false, None) => known.label.to_owned(),
    };
    let plot = Plot {
        title,
        now: values_now,
        style,
        unit: known.unit,
        limit,
        span_ms,
        end_ms: model.now_ms(),
        values: &|columns| model.read_line_values(line, span_ms, columns),
        overlay: memory.map(|_| Overlay {
            style: painter.theme.memory,
            values: &memory_line,
        }),
        stack: None,
        reason: reading
            .err()
            .map(|reason| format!("{}: {reason}", known.label)),
        is_selected: shared.is_none(),
    };
    plot.draw(painter, area);
}

/// The letters of the causes, in the order of [`LimitClass::ALL`].
const LIMIT_LETTERS: [char; LimitClass::ALL.len()] =
    ['-', 'H', 'I', 'X', 'C', 'M', 'T', 'A', 'L', 'P', 'S', '?'];

/// Draws the shares of the causes that limited a GPU, stacked.
fn draw_limits(
    painter: &mut Painter<'_>,
    area: Rect,
    gpu: &GpuSample,
    is_for_all_gpus: bool,
    model: &Model,
    state: &State,
) {
    let metrics: Vec<_> = (0..METRICS.len())
        .filter(|metric| is_limit(*metric))
        .collect();
    let parts = iter::zip(LimitClass::ALL, LIMIT_LETTERS).zip(painter.theme.parts);
    let parts: Vec<_> = parts
        .map(|((cause, letter), style)| StackPart {
            letter,
            label: cause.label(),
            style,
        })
        .collect();
    let span_ms = state.chart_span_ms();
    let now = describe::find_current_limits(gpu, model.now_ms());
    let now = format_optional(now, |limits| {
        let (share, label) = (limits.main_share(), limits.main.label());
        if area.width >= MIN_WIDTH_WITH_WORDS {
            share
        } else {
            let letter = LIMIT_LETTERS[limits.main as usize];
            share.replace(label, &letter.to_string())
        }
    });
    let label = metric_label(metrics[0]);
    let plot = Plot {
        title: if is_for_all_gpus {
            format!("{} {}", gpu.index, model.gpu_name(gpu.index))
        } else {
            label.to_owned()
        },
        now: vec![(now, painter.theme.strong)],
        style: painter.theme.plain,
        unit: Unit::Percent,
        limit: None,
        span_ms,
        end_ms: model.now_ms(),
        values: &|_| Vec::new(),
        overlay: None,
        stack: Some(Stack {
            parts: &parts,
            values: &|part, columns| {
                let line = ChartLine::Gpu(gpu.index, metrics[part]);
                model.read_line_values(line, span_ms, columns)
            },
        }),
        reason: gpu
            .limits
            .absence()
            .map(|reason| format!("{label}: {reason}")),
        is_selected: !is_for_all_gpus,
    };
    plot.draw(painter, area);
}
