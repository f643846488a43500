//! The activity of a GPU's units, if the hardware counts it.

use gpumon_probe::model::{
    GpuSample,
    fields::{Field, GPU_FIELDS},
};
use ratatui::layout::Rect;

use super::scroll_view::{Line, scroll_view};
use crate::top::{
    history,
    metrics::METRICS,
    model::Model,
    painter::Painter,
    state::State,
    text::{ABSENT, align_left, align_right},
    theme::Meaning,
};

/// Returns all activity fields of the catalog.
fn parts() -> impl Iterator<Item = &'static Field> {
    GPU_FIELDS
        .iter()
        .filter(|field| field.id.starts_with("activity."))
}

pub(super) fn activity(painter: &mut Painter<'_>, area: Rect, model: &Model, state: &State) -> u16 {
    let gpus = model.gpus();
    match (state.gpu.and_then(|gpu| model.gpu(gpu)), gpus) {
        (Some(gpu), _) | (None, [gpu]) => of_one(painter, area, gpu, model, state),
        (None, gpus) => of_all(painter, area, gpus, state),
    }
}

fn of_one(
    painter: &mut Painter<'_>,
    area: Rect,
    gpu: &GpuSample,
    model: &Model,
    state: &State,
) -> u16 {
    if let Some(reason) = gpu.activity.absence() {
        let text = format!("The activity of GPU {} is not known: {reason}", gpu.index);
        painter.text(area.x, area.y, area.width, &text, painter.theme.dim);
        return area.height - 1;
    }
    let label = 27;
    let drawn = usize::from(area.width).saturating_sub(label + 8);
    let spark = drawn / 2;
    let lines: Vec<Line> = parts()
        .map(|field| {
            let style = painter.theme.of(meaning(field));
            let percent = field.access.value(gpu);
            let (full, empty) = drawn_bar(percent, drawn - spark, painter);
            let past = METRICS
                .iter()
                .position(|metric| metric.id == field.id)
                .map(|metric| {
                    let values = model.line(
                        history::Line::Gpu(gpu.index, metric),
                        state.span_ms(),
                        spark.saturating_sub(1),
                    );
                    let shares = values.into_iter().map(|value| Some(value? / 100.0));
                    painter.glyphs.draw_spark(shares)
                });
            vec![
                (align_left(field.label, label), painter.theme.plain),
                (align_right(&shown(percent), 6) + "  ", style),
                (full, style),
                (empty, painter.theme.dim),
                (" ".to_owned() + &past.unwrap_or_default(), style),
            ]
        })
        .collect();
    scroll_view(painter, area, None, &lines, state.view_scroll)
}

fn of_all(painter: &mut Painter<'_>, area: Rect, gpus: &[GpuSample], state: &State) -> u16 {
    let columns: Vec<_> = parts().filter(|field| field.chart.is_some()).collect();
    let name = 6;
    let room = usize::from(area.width).saturating_sub(name) / columns.len();
    // Each cell has a number with its unit, and a bar if there is room.
    let bars = room.saturating_sub(9).min(24);
    let bars = if bars < 4 { 0 } else { bars };
    let cell = (7 + if bars > 0 { bars + 1 } else { 0 }).min(room.max(7));
    let heading: Line = std::iter::once((align_left("GPU", name), painter.theme.dim))
        .chain(columns.iter().map(|field| {
            (
                align_left(&align_right(&field.short_label.to_uppercase(), 7), cell),
                painter.theme.dim,
            )
        }))
        .collect();
    let lines: Vec<Line> = gpus
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
                let style = painter.theme.of(meaning(field));
                let percent = field.access.value(gpu);
                line.push((align_right(&shown(percent), 7), style));
                if bars > 0 {
                    let (full, empty) = drawn_bar(percent, bars, painter);
                    line.extend([(" ".to_owned() + &full, style), (empty, painter.theme.dim)]);
                }
            }
            line
        })
        .collect();
    scroll_view(painter, area, Some(&heading), &lines, state.view_scroll)
}

/// Returns the meaning of a field. Bandwidth has the color of memory, even though it is in percent.
fn meaning(field: &Field) -> Meaning {
    if field.id == "activity.dram_bandwidth_percent" {
        Meaning::Memory
    } else {
        Meaning::Utilization
    }
}

fn shown(percent: Option<f64>) -> String {
    percent.map_or_else(|| ABSENT.to_owned(), |percent| format!("{percent:.0} %"))
}

fn drawn_bar(percent: Option<f64>, columns: usize, painter: &Painter<'_>) -> (String, String) {
    percent.map_or_else(
        || (String::new(), " ".repeat(columns)),
        |percent| painter.glyphs.draw_bar(percent / 100.0, columns),
    )
}
