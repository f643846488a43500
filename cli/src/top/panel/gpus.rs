//! One line per GPU: utilisation with its last minute, memory, temperature, power, and what is the matter, in words.

use gpumon_probe::model::{GpuSample, Health};
use ratatui::{
    layout::Rect,
    style::{Modifier, Style},
};
use unicode_width::UnicodeWidthStr;

use super::phrase_line::{Segment, fit_phrases};
use crate::{
    describe::{self, LONGEST, Load, Loads, Phrase, Thresholds},
    table::units::ABSENT,
    top::{
        history::Line,
        metrics::position,
        model::Model,
        painter::{Hit, Painter},
        state::State,
        text::{left, right},
    },
};

const MINUTE_MS: u64 = 60_000;
const GAP: usize = 2;
const TEMPERATURE: usize = 6;
/// Less of a bar, or of a line, tells nothing.
const SHORTEST_BAR: usize = 5;
const SHORTEST_SPARK: usize = 8;

/// The widths of the parts. They depend on the room and on what the boards have, so that nothing moves with the values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Widths {
    name: usize,
    busy: usize,
    spark: usize,
    memory: usize,
    bar: usize,
    power: usize,
}

impl Widths {
    /// `widest` has the parts as wide as they would like to be.
    fn new(columns: usize, widest: Self, is_named_above: bool) -> Self {
        let mut widths = Self { name: 0, spark: 0, bar: 0, ..widest };
        let least = if columns < 60 { 6 } else { 10 };
        let beyond_words = columns.saturating_sub(widths.taken() + GAP + Phrase::SHORT);
        widths.name = widest.name.min(beyond_words.clamp(least, LONGEST));
        // Where it is narrow, power is in its chart, and the name of boards that are all alike above.
        if widths.taken() + Phrase::SHORT > columns {
            widths.power = 0;
        }
        if is_named_above && widths.taken() + Phrase::SHORT > columns {
            widths.name = 0;
        }
        // Words come first; of what is left beyond them, they get half, and the two drawings share the rest.
        let rest = columns.saturating_sub(widths.taken() + Phrase::SHORT);
        let drawn = if rest < 24 { rest } else { (24 + (rest - 24) / 2).min(64) };
        if drawn >= SHORTEST_BAR + SHORTEST_SPARK + 2 * GAP {
            widths.spark = (drawn * 2 / 5).max(SHORTEST_SPARK);
            widths.bar = drawn - widths.spark - 2 * GAP;
        } else if drawn >= SHORTEST_BAR + GAP {
            widths.bar = drawn - GAP;
        }
        widths
    }

    fn taken(&self) -> usize {
        let parts = [self.name, self.busy, self.spark, self.memory, self.bar, TEMPERATURE - 1, self.power];
        3 + parts.into_iter().filter(|width| *width > 0).map(|width| width + GAP).sum::<usize>()
    }
}

/// As many GPUs as fit, `beside` of them beside each other.
pub(in crate::top) fn gpus(painter: &mut Painter<'_>, area: Rect, beside: u16, model: &Model, state: &State) {
    painter.hit(area, Hit::Gpus);
    let all = model.gpus();
    let width = area.width / beside;
    let is_named_above = all.iter().all(|gpu| model.name(gpu.index) == model.name(all[0].index));
    let widths = Widths::new(usize::from(width), widest(all, model), is_named_above);
    let room = usize::from(area.height) * usize::from(beside);
    let first = state.gpu_scroll.min(all.len().saturating_sub(room));
    for (place, gpu) in all.iter().skip(first).take(room).enumerate() {
        let (column, line) = (place as u16 / area.height, place as u16 % area.height);
        let line = Rect { x: area.x + column * width, y: area.y + line, width, height: 1 };
        draw(painter, line, gpu, &widths, model, &state.thresholds);
        if state.gpu == Some(gpu.index) {
            painter.highlight(Rect { width: (4 + widths.name as u16).min(width), ..line }, painter.theme.selected);
        }
        painter.hit(line, Hit::Gpu(gpu.index));
    }
    if all.len() > room {
        let (above, below) = (first, all.len() - first - room);
        let more = format!(" {above} ▲ {below} ▼");
        painter.text_right(area.x, area.bottom() - 1, area.width, &more, painter.theme.notice);
    }
}

/// The parts as wide as what they may have to hold.
fn widest(all: &[GpuSample], model: &Model) -> Widths {
    let most = |width: &dyn Fn(&GpuSample) -> usize| all.iter().map(width).max().unwrap_or(0);
    // In use may be all that there is, which has a digit more where it is aligned on its point.
    let all_memory = |gpu: &GpuSample| gpu.memory.total_bytes.value().map(|bytes| describe::total(*bytes).width());
    let limit = |gpu: &GpuSample| gpu.power.limit_watts.value().map(|watts| format!("{watts:.0}").width());
    let has_other = all.iter().any(describe::is_sm_activity);
    Widths {
        name: most(&|gpu| model.name(gpu.index).width()),
        busy: if has_other { describe::BUSY_WIDTH_WITH_SM } else { describe::BUSY_WIDTH },
        spark: 0,
        memory: most(&|gpu| {
            let all = all_memory(gpu).map_or(0, |all| if all > 3 { 2 * all } else { 2 * all + 2 } + "/ GiB".len());
            all.max(memory(gpu).width())
        }),
        bar: 0,
        power: most(&|gpu| limit(gpu).map_or(0, |limit| 2 * limit + "/ W".len()).max(power(gpu).width())),
    }
}

fn draw(
    painter: &mut Painter<'_>,
    area: Rect,
    gpu: &GpuSample,
    widths: &Widths,
    model: &Model,
    thresholds: &Thresholds,
) {
    let theme = painter.theme;
    // What a hung GPU shows is its past.
    let is_old = !matches!(gpu.health, Health::Ok);
    let fade = |style| if is_old { theme.dim } else { style };
    let loads = Loads::of_gpu(gpu, model.board(gpu.index), thresholds);
    let of_load = |load: Load| fade(theme.of_load(load));
    let mut at = Cursor { x: area.x, y: area.y, end: area.right() };
    at.put(painter, &format!("{} ", right(&gpu.index.to_string(), 2)), theme.plain);
    if widths.name > 0 {
        let name = describe::fitted(&model.name(gpu.index), widths.name, '…');
        at.put(painter, &left(&name, widths.name + GAP), fade(theme.strong));
    }
    at.put_number(painter, &right(&describe::busy(gpu), widths.busy), of_load(loads.utilization));
    at.x += GAP as u16;
    if widths.spark > 0 {
        let metric = if describe::is_sm_activity(gpu) { "sm" } else { "utilization" };
        let past = position(metric).map(|metric| model.line(Line::Gpu(gpu.index, metric), MINUTE_MS, widths.spark));
        let past = past.into_iter().flatten().map(|value| value.map(|value| value / 100.0));
        painter.spark(at.x, at.y, past, theme.utilization);
        at.x += (widths.spark + GAP) as u16;
    }
    let share = describe::share(gpu.memory.used_bytes.value(), gpu.memory.total_bytes.value());
    at.put_number(painter, &right(&memory(gpu), widths.memory), of_load(loads.memory));
    at.x += GAP as u16;
    if widths.bar > 0 {
        let style = of_load(loads.memory).remove_modifier(Modifier::UNDERLINED);
        painter.bar(at.x, at.y, widths.bar as u16, share, style);
        at.x += (widths.bar + GAP) as u16;
    }
    let celsius = gpu.temperature.gpu_celsius.value();
    let celsius =
        celsius.map_or_else(|| ABSENT.to_owned(), |celsius| format!("{celsius:.0} {}", painter.glyphs.celsius()));
    // Three digits are rare enough to take a column of the gap.
    at.x -= 1;
    at.put_number(painter, &right(&celsius, TEMPERATURE), of_load(loads.temperature));
    at.x += GAP as u16;
    if widths.power > 0 {
        at.put_number(painter, &right(&power(gpu), widths.power), of_load(loads.power));
        at.x += GAP as u16;
    }
    let room = usize::from(at.end.saturating_sub(at.x));
    for (place, Segment { text, level }) in fit_phrases(&model.phrases(gpu), room).into_iter().enumerate() {
        at.put(painter, if place > 0 { ", " } else { "" }, theme.dim);
        at.put(painter, &text, theme.of_level(level));
    }
}

/// Where on a line the next part stands.
struct Cursor {
    x: u16,
    y: u16,
    end: u16,
}

impl Cursor {
    fn put(&mut self, painter: &mut Painter<'_>, text: &str, style: Style) {
        self.x += painter.text(self.x, self.y, self.end.saturating_sub(self.x), text, style);
    }

    /// A number that stands right; its blanks are not underlined.
    fn put_number(&mut self, painter: &mut Painter<'_>, text: &str, style: Style) {
        let number = text.trim_start();
        self.x += (text.len() - number.len()) as u16;
        self.put(painter, number, if number == ABSENT { painter.theme.dim } else { style });
    }
}

/// `78.2/140 GiB`.
fn memory(gpu: &GpuSample) -> String {
    match (gpu.memory.used_bytes.value(), gpu.memory.total_bytes.value()) {
        (Some(used), Some(total)) => format!("{}/{} GiB", describe::used(*used), describe::total(*total)),
        (Some(used), None) => format!("{} GiB", describe::used(*used)),
        (None, _) => ABSENT.to_owned(),
    }
}

/// `692/700 W`.
fn power(gpu: &GpuSample) -> String {
    match (gpu.power.draw_watts.value(), gpu.power.limit_watts.value()) {
        (Some(draw), Some(limit)) => format!("{draw:.0}/{limit:.0} W"),
        (Some(draw), None) => format!("{draw:.0} W"),
        (None, _) => ABSENT.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_fit_at_any_width_and_the_first_phrase_is_whole_from_80_columns_on() {
        let widest = Widths { name: 30, busy: 5, spark: 0, memory: 13, bar: 0, power: 9 };
        for columns in 40..400 {
            let widths = Widths::new(columns, widest, false);
            let taken = widths.taken();
            assert!(columns < 60 || taken <= columns, "{taken} of {columns}");
            assert!(columns < 80 || columns - taken >= Phrase::SHORT, "{} left of {columns}", columns - taken);
        }
        let short = Widths::new(80, Widths { name: 4, ..widest }, true);
        assert_eq!((short.spark, short.bar), (0, SHORTEST_BAR), "the curve goes first");
        let narrow = Widths::new(60, Widths { name: 4, ..widest }, true);
        assert!(60 - narrow.taken() >= Phrase::SHORT, "power and name go before words do: {narrow:?}");
    }
}
