//! One line per GPU: utilisation with its last minute, memory, temperature, power, and what is the matter, in words.

use std::cmp::Reverse;

use gpumon_probe::model::{GpuSample, Health};
use ratatui::{layout::Rect, style::Style};

use crate::{
    table::units::{ABSENT, gib, three_digits},
    top::{
        forecast,
        history::Line,
        pen::{Hit, Pen},
        state::State,
        text::{left, right},
        words::{self, Weight},
        world::World,
    },
};

/// What the little line reaches back.
const MINUTE_MS: u64 = 60_000;
/// Memory this full is about to run out.
const NEARLY_FULL: f64 = 0.95;

/// The widths of the parts, which depend on the room alone, so that nothing moves with the values.
struct Widths {
    name: usize,
    spark: usize,
    memory: usize,
    bar: usize,
    power: usize,
}

impl Widths {
    fn new(columns: usize, name: usize, memory: usize) -> Self {
        // Index, percentage, temperature, and the gaps.
        let fixed = 3 + 6 + 2 + 7;
        let power = 13;
        let name = name.min(match columns {
            ..60 => 6,
            60..90 => 10,
            _ => 24,
        });
        let left = columns.saturating_sub(fixed + name + 1 + memory + 2 + power);
        // Words get half of what is left, then the two drawings share the rest.
        let drawn = if left < 16 { 0 } else { (left / 2).min(64) };
        let spark = drawn * 2 / 5;
        let bar = drawn.saturating_sub(spark + 4);
        Self { name, spark, memory, bar: if bar < 5 { 0 } else { bar }, power }
    }
}

/// As many GPUs as fit, `beside` of them beside each other.
pub(in crate::top) fn gpus(pen: &mut Pen<'_>, area: Rect, beside: u16, world: &World, state: &State) {
    pen.hit(area, Hit::Gpus);
    let all = world.gpus();
    let name = all.iter().map(|gpu| world.name(gpu.index).chars().count()).max().unwrap_or(0);
    let memory = all.iter().map(|gpu| memory(gpu).chars().count()).max().unwrap_or(0).max(13);
    let width = area.width / beside;
    let widths = Widths::new(usize::from(width), name, memory);
    let room = usize::from(area.height) * usize::from(beside);
    let first = state.gpu_scroll.min(all.len().saturating_sub(room));
    for (place, gpu) in all.iter().skip(first).take(room).enumerate() {
        let (column, line) = (place as u16 / area.height, place as u16 % area.height);
        let line = Rect { x: area.x + column * width, y: area.y + line, width, height: 1 };
        draw(pen, line, gpu, &widths, world);
        if state.gpu == Some(gpu.index) {
            pen.highlight(Rect { width: (4 + widths.name as u16).min(width), ..line }, pen.theme.selected);
        }
        pen.hit(line, Hit::Gpu(gpu.index));
    }
    if all.len() > room {
        let (above, below) = (first, all.len() - first - room);
        let more = format!(" {above} ▲ {below} ▼");
        pen.text_right(area.x, area.bottom() - 1, area.width, &more, pen.theme.notice);
    }
}

fn draw(pen: &mut Pen<'_>, area: Rect, gpu: &GpuSample, widths: &Widths, world: &World) {
    let theme = pen.theme;
    // What a hung GPU shows is its past.
    let is_old = !matches!(gpu.health, Health::Ok);
    let fade = |style| if is_old { theme.dim } else { style };
    let mut at = Cursor { x: area.x, y: area.y, end: area.right() };
    at.put(pen, &format!("{} ", right(&gpu.index.to_string(), 2)), theme.plain);
    at.put(pen, &(left(&world.name(gpu.index), widths.name) + " "), fade(theme.strong));
    let busy = gpu.utilization.gpu_percent.value();
    let busy = busy.map_or_else(|| ABSENT.to_owned(), |busy| format!("{busy:.0} %"));
    at.put(pen, &format!("{} ", right(&busy, 5)), fade(theme.utilization));
    if widths.spark > 0 {
        let past = world.line(Line::Gpu(gpu.index, 0), MINUTE_MS, widths.spark);
        let past = past.into_iter().map(|value| value.map(|value| value / 100.0));
        pen.spark(at.x, at.y, past, theme.utilization);
        at.x += widths.spark as u16 + 1;
    }
    let share = share(gpu);
    let memory_style = if share.is_some_and(|share| share >= NEARLY_FULL) { theme.alarm } else { theme.memory };
    at.put(pen, &format!(" {}  ", right(&memory(gpu), widths.memory)), fade(theme.plain));
    if widths.bar > 0 {
        pen.bar(at.x, at.y, widths.bar as u16, share, fade(memory_style));
        at.x += widths.bar as u16 + 2;
    }
    let celsius = gpu.temperature.gpu_celsius.value();
    let celsius = celsius.map_or_else(|| ABSENT.to_owned(), |celsius| format!("{celsius:.0} {}", pen.glyphs.celsius()));
    at.put(pen, &right(&celsius, 6), fade(theme.temperature));
    at.put(pen, &format!("{}  ", right(&power(gpu), widths.power)), fade(theme.power));
    let mut all = words::of_gpu(gpu, world.now_ms());
    all.extend(forecast::memory(gpu, world));
    all.sort_by_key(|words| Reverse(words.weight));
    for (place, words) in all.into_iter().enumerate() {
        if place > 0 {
            at.put(pen, ", ", theme.dim);
        }
        let style = match words.weight {
            Weight::Quiet => theme.dim,
            Weight::Notice => theme.notice,
            Weight::Alarm => theme.alarm,
        };
        at.put(pen, &words.text, style);
    }
}

/// Where on a line the next part stands.
struct Cursor {
    x: u16,
    y: u16,
    end: u16,
}

impl Cursor {
    fn put(&mut self, pen: &mut Pen<'_>, text: &str, style: Style) {
        self.x += pen.text(self.x, self.y, self.end.saturating_sub(self.x), text, style);
    }
}

fn share(gpu: &GpuSample) -> Option<f64> {
    let total = gpu.memory.total_bytes.value().filter(|total| **total > 0)?;
    Some(*gpu.memory.used_bytes.value()? as f64 / *total as f64)
}

/// `78.2/140 GiB`.
fn memory(gpu: &GpuSample) -> String {
    match (gpu.memory.used_bytes.value(), gpu.memory.total_bytes.value()) {
        (Some(used), Some(total)) => format!("{}/{} GiB", gib(*used), gib(*total)),
        (Some(used), None) => format!("{} GiB", gib(*used)),
        (None, _) => ABSENT.to_owned(),
    }
}

/// `692/700 W`.
fn power(gpu: &GpuSample) -> String {
    match (gpu.power.draw_watts.value(), gpu.power.limit_watts.value()) {
        (Some(draw), Some(limit)) => format!("{draw:.0}/{limit:.0} W"),
        (Some(draw), None) => format!("{} W", three_digits(*draw)),
        (None, _) => ABSENT.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_fit_at_any_width_and_words_have_room_where_there_is_some() {
        for columns in 40..400 {
            let widths = Widths::new(columns, 30, 13);
            let taken = 3 + 6 + 2 + 7 + widths.name + 1 + widths.memory + 2 + widths.power + widths.spark + widths.bar;
            assert!(columns < 60 || taken <= columns, "{taken} of {columns}");
            if columns >= 100 {
                assert!(columns - taken >= 12, "{} left of {columns}", columns - taken);
            }
        }
    }
}
