//! What all GPUs come to: mean utilization, memory and power.

use gpumon_probe::{
    model::{GpuSample, Health},
    stat::Window,
};
use ratatui::{
    layout::Rect,
    style::{Modifier, Style},
};

use super::widths::{GAP, TEMPERATURE, Widths};
use crate::{
    describe::{Load, Thresholds, Total, add_up_gpus},
    top::{
        history::{Line, MINUTE_MS},
        metrics::position,
        model::Model,
        painter::Painter,
        text::ABSENT,
    },
};

/// Draws them below the parts of the GPUs' lines. Where not all GPUs answer and have all values, it says how many do.
pub(super) fn draw(
    painter: &mut Painter<'_>,
    area: Rect,
    widths: &Widths,
    model: &Model,
    thresholds: &Thresholds,
) {
    if area.height == 0 {
        return;
    }
    // What others show is their past.
    let well: Vec<_> = model
        .gpus()
        .iter()
        .filter(|gpu| gpu.health == Health::Ok)
        .collect();
    let [busy, memory, power] = add_up_gpus(&well);
    let theme = painter.theme;
    let label = if widths.name > 0 { "Total" } else { "all" };
    painter.text(area.x, area.y, area.width, label, theme.strong);
    let mut x = area.x + (3 + Widths::with_gap(widths.name) + widths.busy) as u16;
    let put = |painter: &mut Painter<'_>, x: u16, (total, text): &(Total, String), thresholds| {
        let style = theme.of_load(Load::of(total.share(), thresholds));
        let (text, style) = if total.count == 0 {
            (ABSENT, theme.dim)
        } else {
            (text.as_str(), style)
        };
        let width = text.len() as u16;
        painter.text(x.saturating_sub(width), area.y, width, text, style);
        style.remove_modifier(Modifier::UNDERLINED)
    };
    put(painter, x, &busy, thresholds.utilization);
    x += GAP as u16;
    if widths.spark > 0 {
        painter.spark(
            x,
            area.y,
            mean_line(model, widths.spark).into_iter(),
            theme.utilization,
        );
    }
    x += (Widths::with_gap(widths.spark) + widths.memory) as u16;
    let style: Style = put(painter, x, &memory, thresholds.memory);
    painter.bar(
        x + GAP as u16,
        area.y,
        widths.bar as u16,
        memory.0.share(),
        style,
    );
    x += (GAP + Widths::with_gap(widths.bar) + TEMPERATURE - 1) as u16;
    if widths.power > 0 {
        x += (GAP + widths.power) as u16;
        put(painter, x, &power, thresholds.power);
    }
    let counts = [busy, memory, power].map(|(total, _)| total.count);
    let least = counts.into_iter().min().unwrap_or(0);
    let all = model.gpus().len();
    if least < all {
        let x = x + GAP as u16;
        painter.text(
            x,
            area.y,
            area.right().saturating_sub(x),
            &format!("{least} of {all} GPUs"),
            theme.dim,
        );
    }
}

/// The mean utilization of the last minute.
fn mean_line(model: &Model, columns: usize) -> Vec<Option<f64>> {
    let of_gpu = |gpu: &GpuSample| {
        let metric = position("utilization")?;
        Some(model.line(Line::Gpu(gpu.index, metric), MINUTE_MS, columns))
    };
    let lines: Vec<_> = model.gpus().iter().filter_map(of_gpu).collect();
    let mean = |place: usize| {
        let values: Window = lines.iter().filter_map(|line| line[place]).collect();
        values.mean().map(|percent| percent / 100.0)
    };
    (0..columns).map(mean).collect()
}
