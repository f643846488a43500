//! What the parts of a GPU do, where the hardware counts it.

use gpumon_probe::model::{Activity, GpuSample, Reading};
use ratatui::layout::Rect;

use super::sheet::{Line, sheet};
use crate::{
    table::bar::bar,
    top::{
        history,
        metrics::position,
        pen::Pen,
        state::State,
        text::{left, percent, right},
        theme::Meaning,
        world::World,
    },
};

/// A part of a GPU, and the metric in which its past is kept.
struct Part {
    label: &'static str,
    short: &'static str,
    read: fn(&Activity) -> &Reading<f64>,
    metric: Option<&'static str>,
    meaning: Meaning,
}

const PARTS: [Part; 12] = [
    part("Any engine busy", "BUSY", |parts| &parts.graphics_percent, None, Meaning::Utilization),
    part("Multiprocessors active", "SM", |parts| &parts.sm_percent, Some("sm"), Meaning::Utilization),
    part("Occupancy by warps", "OCCUP", |parts| &parts.occupancy_percent, Some("occupancy"), Meaning::Utilization),
    part("Tensor cores", "TENSOR", |parts| &parts.tensor_percent, Some("tensor"), Meaning::Utilization),
    part("  half precision", "HALF", |parts| &parts.tensor_half_percent, None, Meaning::Utilization),
    part("  integers", "INT", |parts| &parts.tensor_integer_percent, None, Meaning::Utilization),
    part("  double precision", "DOUBLE", |parts| &parts.tensor_double_percent, None, Meaning::Utilization),
    part("Memory bandwidth", "DRAM", |parts| &parts.dram_bandwidth_percent, Some("dram"), Meaning::Memory),
    part("FP64 units", "FP64", |parts| &parts.fp64_percent, Some("fp64"), Meaning::Utilization),
    part("FP32 units", "FP32", |parts| &parts.fp32_percent, Some("fp32"), Meaning::Utilization),
    part("FP16 units", "FP16", |parts| &parts.fp16_percent, Some("fp16"), Meaning::Utilization),
    part("Integer units", "INT", |parts| &parts.integer_percent, Some("integer"), Meaning::Utilization),
];

/// What stands in the table of all GPUs, by the places in `PARTS`.
const IN_TABLE: [usize; 8] = [1, 2, 3, 7, 8, 9, 10, 11];

const fn part(
    label: &'static str,
    short: &'static str,
    read: fn(&Activity) -> &Reading<f64>,
    metric: Option<&'static str>,
    meaning: Meaning,
) -> Part {
    Part { label, short, read, metric, meaning }
}

pub(super) fn activity(pen: &mut Pen<'_>, area: Rect, world: &World, state: &State) {
    let gpus = world.gpus();
    match (state.gpu.and_then(|gpu| world.gpu(gpu)), gpus) {
        (Some(gpu), _) | (None, [gpu]) => of_one(pen, area, gpu, world, state),
        (None, gpus) => of_all(pen, area, gpus, state),
    }
}

fn of_one(pen: &mut Pen<'_>, area: Rect, gpu: &GpuSample, world: &World, state: &State) {
    let Some(parts) = gpu.activity.value() else {
        let reason = gpu.activity.absence().map_or_else(String::new, ToString::to_string);
        let text = format!("What the parts of GPU {} do is not known: {reason}", gpu.index);
        pen.text(area.x, area.y, area.width, &text, pen.theme.dim);
        return;
    };
    let label = 24;
    let drawn = usize::from(area.width).saturating_sub(label + 8);
    let spark = drawn / 2;
    let lines: Vec<Line> = PARTS
        .iter()
        .map(|part| {
            let reading = (part.read)(parts);
            let style = pen.theme.of(part.meaning);
            let share = reading.value().map(|percent| percent / 100.0);
            let (full, empty) = share.map_or_else(
                || (String::new(), " ".repeat(drawn - spark)),
                |share| bar(share, drawn - spark, pen.glyphs.has_lines()),
            );
            let past = part.metric.and_then(position).map(|metric| {
                let values =
                    world.line(history::Line::Gpu(gpu.index, metric), state.span_ms(), spark.saturating_sub(1));
                values.into_iter().map(|value| pen.glyphs.spark(value.map(|value| value / 100.0))).collect::<String>()
            });
            vec![
                (left(part.label, label), pen.theme.plain),
                (right(&percent(reading), 6) + "  ", style),
                (full, style),
                (empty, pen.theme.dim),
                (" ".to_owned() + &past.unwrap_or_default(), style),
            ]
        })
        .collect();
    sheet(pen, area, None, &lines, state.view_scroll);
}

fn of_all(pen: &mut Pen<'_>, area: Rect, gpus: &[GpuSample], state: &State) {
    let name = 6;
    let room = usize::from(area.width).saturating_sub(name) / IN_TABLE.len();
    // A number with its unit, and beside it a bar where there is room.
    let bars = room.saturating_sub(9).min(24);
    let bars = if bars < 4 { 0 } else { bars };
    let cell = (7 + if bars > 0 { bars + 1 } else { 0 }).min(room.max(7));
    let heading: Line = std::iter::once((left("GPU", name), pen.theme.dim))
        .chain(IN_TABLE.iter().map(|place| (left(&right(PARTS[*place].short, 7), cell), pen.theme.dim)))
        .collect();
    let lines: Vec<Line> = gpus
        .iter()
        .map(|gpu| {
            let mut line = vec![(left(&right(&gpu.index.to_string(), 3), name), pen.theme.plain)];
            let Some(parts) = gpu.activity.value() else {
                let reason = gpu.activity.absence().map_or_else(String::new, ToString::to_string);
                line.push((reason, pen.theme.dim));
                return line;
            };
            for part in IN_TABLE.map(|place| &PARTS[place]) {
                let reading = (part.read)(parts);
                let style = pen.theme.of(part.meaning);
                line.push((right(&percent(reading), 7), style));
                if bars > 0 {
                    let share = reading.value().map(|percent| percent / 100.0);
                    let (full, empty) = share.map_or_else(
                        || (String::new(), " ".repeat(bars)),
                        |share| bar(share, bars, pen.glyphs.has_lines()),
                    );
                    line.extend([(" ".to_owned() + &full, style), (empty, pen.theme.dim)]);
                }
            }
            line
        })
        .collect();
    sheet(pen, area, Some(&heading), &lines, state.view_scroll);
}
