//! What the parts of a GPU do, where the hardware counts it.

use gpumon_probe::model::{
    GpuSample,
    fields::{Field, GPU_FIELDS},
};
use ratatui::layout::Rect;

use super::sheet::{Line, sheet};
use crate::{
    table::bar::bar,
    top::{
        history,
        metrics::METRICS,
        pen::Pen,
        state::State,
        text::{ABSENT, left, right},
        theme::Meaning,
        world::World,
    },
};

/// Every part, as the catalogue has them.
fn parts() -> impl Iterator<Item = &'static Field> {
    GPU_FIELDS.iter().filter(|field| field.id.starts_with("activity."))
}

pub(super) fn activity(pen: &mut Pen<'_>, area: Rect, world: &World, state: &State) {
    let gpus = world.gpus();
    match (state.gpu.and_then(|gpu| world.gpu(gpu)), gpus) {
        (Some(gpu), _) | (None, [gpu]) => of_one(pen, area, gpu, world, state),
        (None, gpus) => of_all(pen, area, gpus, state),
    }
}

fn of_one(pen: &mut Pen<'_>, area: Rect, gpu: &GpuSample, world: &World, state: &State) {
    if let Some(reason) = gpu.activity.absence() {
        let text = format!("The activity of GPU {} is not known: {reason}", gpu.index);
        pen.text(area.x, area.y, area.width, &text, pen.theme.dim);
        return;
    }
    let label = 27;
    let drawn = usize::from(area.width).saturating_sub(label + 8);
    let spark = drawn / 2;
    let lines: Vec<Line> = parts()
        .map(|field| {
            let style = pen.theme.of(meaning(field));
            let percent = field.access.value(gpu);
            let (full, empty) = drawn_bar(percent, drawn - spark, pen);
            let past = METRICS.iter().position(|metric| metric.id == field.id).map(|metric| {
                let values =
                    world.line(history::Line::Gpu(gpu.index, metric), state.span_ms(), spark.saturating_sub(1));
                values.into_iter().map(|value| pen.glyphs.spark(value.map(|value| value / 100.0))).collect::<String>()
            });
            vec![
                (left(field.label, label), pen.theme.plain),
                (right(&shown(percent), 6) + "  ", style),
                (full, style),
                (empty, pen.theme.dim),
                (" ".to_owned() + &past.unwrap_or_default(), style),
            ]
        })
        .collect();
    sheet(pen, area, None, &lines, state.view_scroll);
}

fn of_all(pen: &mut Pen<'_>, area: Rect, gpus: &[GpuSample], state: &State) {
    let columns: Vec<_> = parts().filter(|field| field.chart.is_some()).collect();
    let name = 6;
    let room = usize::from(area.width).saturating_sub(name) / columns.len();
    // A number with its unit, and beside it a bar where there is room.
    let bars = room.saturating_sub(9).min(24);
    let bars = if bars < 4 { 0 } else { bars };
    let cell = (7 + if bars > 0 { bars + 1 } else { 0 }).min(room.max(7));
    let heading: Line = std::iter::once((left("GPU", name), pen.theme.dim))
        .chain(columns.iter().map(|field| (left(&right(&field.short_label.to_uppercase(), 7), cell), pen.theme.dim)))
        .collect();
    let lines: Vec<Line> = gpus
        .iter()
        .map(|gpu| {
            let mut line = vec![(left(&right(&gpu.index.to_string(), 3), name), pen.theme.plain)];
            if let Some(reason) = gpu.activity.absence() {
                line.push((reason.to_string(), pen.theme.dim));
                return line;
            }
            for field in &columns {
                let style = pen.theme.of(meaning(field));
                let percent = field.access.value(gpu);
                line.push((right(&shown(percent), 7), style));
                if bars > 0 {
                    let (full, empty) = drawn_bar(percent, bars, pen);
                    line.extend([(" ".to_owned() + &full, style), (empty, pen.theme.dim)]);
                }
            }
            line
        })
        .collect();
    sheet(pen, area, Some(&heading), &lines, state.view_scroll);
}

/// Bandwidth has the color of memory, whatever it is counted in.
fn meaning(field: &Field) -> Meaning {
    if field.id == "activity.dram_bandwidth_percent" { Meaning::Memory } else { Meaning::Utilization }
}

fn shown(percent: Option<f64>) -> String {
    percent.map_or_else(|| ABSENT.to_owned(), |percent| format!("{percent:.0} %"))
}

/// The full and the empty part of a bar.
fn drawn_bar(percent: Option<f64>, columns: usize, pen: &Pen<'_>) -> (String, String) {
    percent.map_or_else(
        || (String::new(), " ".repeat(columns)),
        |percent| bar(percent / 100.0, columns, pen.glyphs.has_lines()),
    )
}
