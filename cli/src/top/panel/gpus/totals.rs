//! What all GPUs come to: mean utilization, memory and power.

use gpumon_probe::model::{GpuSample, Health};
use ratatui::{
    layout::Rect,
    style::{Modifier, Style},
};

use super::widths::{GAP, TEMPERATURE, Widths};
use crate::{
    describe::{self, Load, Thresholds},
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
    let busy = sum(&well, |gpu| {
        Some((*gpu.utilization.gpu_percent.value()?, Some(100.0)))
    });
    let memory = sum(&well, |gpu| {
        Some((
            *gpu.memory.used_bytes.value()? as f64,
            gpu.memory.total_bytes.value().map(|total| *total as f64),
        ))
    });
    let power = sum(&well, |gpu| {
        Some((
            *gpu.power.draw_watts.value()?,
            gpu.power.limit_watts.value().copied(),
        ))
    });
    let theme = painter.theme;
    let label = if widths.name > 0 { "Total" } else { "all" };
    painter.text(area.x, area.y, area.width, label, theme.strong);
    let mut x = area.x + (3 + Widths::with_gap(widths.name) + widths.busy) as u16;
    let put =
        |painter: &mut Painter<'_>, x: u16, sum: &Sum, thresholds, text: &dyn Fn() -> String| {
            let style = theme.of_load(Load::of(sum.share(), thresholds));
            let (text, style) = if sum.count == 0 {
                (ABSENT.to_owned(), theme.dim)
            } else {
                (text(), style)
            };
            painter.text(
                x.saturating_sub(text.len() as u16),
                area.y,
                text.len() as u16,
                &text,
                style,
            );
            style.remove_modifier(Modifier::UNDERLINED)
        };
    put(painter, x, &busy, thresholds.utilization, &|| {
        format!("{:.0} %", busy.value / busy.count as f64)
    });
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
    let bytes = |value: f64| value as u64;
    let text = || describe::used_of(bytes(memory.value), memory.limit.map(bytes));
    let style: Style = put(painter, x, &memory, thresholds.memory, &text);
    painter.bar(
        x + GAP as u16,
        area.y,
        widths.bar as u16,
        memory.share(),
        style,
    );
    x += (GAP + Widths::with_gap(widths.bar) + TEMPERATURE - 1) as u16;
    if widths.power > 0 {
        x += (GAP + widths.power) as u16;
        put(painter, x, &power, thresholds.power, &|| {
            describe::draw_of(power.value, power.limit)
        });
    }
    let least = [busy.count, memory.count, power.count]
        .into_iter()
        .min()
        .unwrap_or(0);
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

struct Sum {
    count: usize,
    value: f64,
    /// Where one has none, neither have all.
    limit: Option<f64>,
}

impl Sum {
    fn share(&self) -> Option<f64> {
        self.limit
            .filter(|limit| *limit > 0.0)
            .map(|limit| self.value / limit)
    }
}

/// Of those that have the value, each with its limit.
fn sum(gpus: &[&GpuSample], read: impl Fn(&GpuSample) -> Option<(f64, Option<f64>)>) -> Sum {
    let values: Vec<_> = gpus.iter().filter_map(|gpu| read(gpu)).collect();
    Sum {
        count: values.len(),
        value: values.iter().map(|value| value.0).sum(),
        limit: values.iter().map(|value| value.1).sum(),
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
        let values: Vec<f64> = lines.iter().filter_map(|line| line[place]).collect();
        (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64 / 100.0)
    };
    (0..columns).map(mean).collect()
}
