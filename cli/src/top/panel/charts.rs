//! Charts: one reading of all GPUs beside each other, or several readings of one.

use gpumon_probe::model::{GpuSample, fields::GPU_FIELDS};
use ratatui::layout::Rect;

use crate::{
    describe,
    top::{
        history::Line,
        layout::{field, grid},
        metrics::{Drawn, METRICS, position},
        model::Model,
        painter::{Hit, Painter},
        plot::Plot,
        state::State,
        text::ABSENT,
    },
};

pub(super) fn charts(painter: &mut Painter<'_>, area: Rect, model: &Model, state: &State) {
    let gpus = model.gpus();
    let one = state.gpu.or(if let [only] = gpus { Some(only.index) } else { None });
    let charts: Vec<(&GpuSample, usize)> = match one {
        Some(gpu) => {
            model.gpu(gpu).into_iter().flat_map(|gpu| state.metrics.iter().map(move |metric| (gpu, *metric))).collect()
        }
        None => gpus.iter().map(|gpu| (gpu, state.shown_metric())).collect(),
    };
    let Some(shape) = grid(area, charts.len()) else { return };
    let places = usize::from(shape.0 * shape.1);
    let first = state.view_scroll.min(charts.len().saturating_sub(places));
    for (place, (gpu, metric)) in charts.iter().skip(first).take(places).enumerate() {
        let field = field(area, shape, place as u16);
        draw(painter, field, gpu, *metric, one.is_none(), model, state);
        if one.is_none() {
            painter.hit(field, Hit::Gpu(gpu.index));
        }
    }
}

fn draw(
    painter: &mut Painter<'_>,
    area: Rect,
    gpu: &GpuSample,
    metric: usize,
    by_gpu: bool,
    model: &Model,
    state: &State,
) {
    // Of a GPU that is divided, the hardware tells what the driver does not.
    let is_other = METRICS[metric].id == "utilization.gpu_percent" && describe::is_sm_activity(gpu);
    let metric = position("sm").filter(|_| is_other).unwrap_or(metric);
    let known = METRICS[metric];
    let (span_ms, line) = (state.span_ms(), Line::Gpu(gpu.index, metric));
    let limit = known.limit_value(GPU_FIELDS, gpu, model.board(gpu.index));
    let reading = (known.access.read)(gpu);
    let now = match reading {
        Ok(_) if is_other => describe::busy(gpu),
        Ok(value) => known.unit.format(value, painter.glyphs),
        Err(_) => ABSENT.to_owned(),
    };
    let title = if by_gpu { format!("{} {}", gpu.index, model.name(gpu.index)) } else { known.label.to_owned() };
    let plot = Plot {
        title,
        now,
        style: painter.theme.of(known.unit.meaning()),
        unit: known.unit,
        limit,
        span_ms,
        end_ms: model.now_ms(),
        values: &|columns| model.line(line, span_ms, columns),
        reason: reading.err().map(|reason| format!("{}: {reason}", known.label)),
        is_selected: !by_gpu,
    };
    plot.draw(painter, area);
}
