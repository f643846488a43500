//! One GPU's line.

use gpumon_probe::model::{GpuSample, Health};
use ratatui::{
    layout::Rect,
    style::{Modifier, Style},
};
use unicode_width::UnicodeWidthStr;

use super::{
    super::phrase_line::{Segment, fit_phrases},
    further::Further,
    widths::{GAP, TEMPERATURE, Widths},
};
use crate::{
    describe::{self, Level, Load, Loads, Phrase, Thresholds},
    terminal::units::ABSENT,
    top::{
        history::{Line, MINUTE_MS},
        metrics::position,
        model::Model,
        painter::Painter,
        text::{align_left, align_right, shown},
    },
};

pub(super) fn draw(
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
    let mut at = Cursor {
        x: area.x,
        y: area.y,
        end: area.right(),
    };
    at.put(
        painter,
        &format!("{} ", align_right(&gpu.index.to_string(), 2)),
        theme.plain,
    );
    if widths.name > 0 {
        let name = describe::fitted(&model.name(gpu.index), widths.name, '…');
        at.put(
            painter,
            &align_left(&name, widths.name + GAP),
            fade(theme.strong),
        );
    }
    at.put_number(
        painter,
        &align_right(&describe::busy(gpu), widths.busy),
        of_load(loads.utilization),
    );
    at.x += GAP as u16;
    if widths.spark > 0 {
        let metric = if describe::is_sm_activity(gpu) {
            "sm"
        } else {
            "utilization"
        };
        let past = position(metric)
            .map(|metric| model.line(Line::Gpu(gpu.index, metric), MINUTE_MS, widths.spark));
        let past = past
            .into_iter()
            .flatten()
            .map(|value| value.map(|value| value / 100.0));
        painter.spark(at.x, at.y, past, theme.utilization);
        at.x += (widths.spark + GAP) as u16;
    }
    let share = describe::share(
        gpu.memory.used_bytes.value(),
        gpu.memory.total_bytes.value(),
    );
    at.put_number(
        painter,
        &align_right(&memory(gpu), widths.memory),
        of_load(loads.memory),
    );
    at.x += GAP as u16;
    if widths.bar > 0 {
        let style = of_load(loads.memory).remove_modifier(Modifier::UNDERLINED);
        painter.bar(at.x, at.y, widths.bar as u16, share, style);
        at.x += (widths.bar + GAP) as u16;
    }
    let celsius = gpu.temperature.gpu_celsius.value();
    let celsius = celsius.map_or_else(
        || ABSENT.to_owned(),
        |celsius| format!("{celsius:.0} {}", painter.glyphs.celsius()),
    );
    // Three digits are rare enough to take a column of the gap.
    at.x -= 1;
    at.put_number(
        painter,
        &align_right(&celsius, TEMPERATURE),
        of_load(loads.temperature),
    );
    at.x += GAP as u16;
    if widths.power > 0 {
        at.put_number(
            painter,
            &align_right(&power(gpu), widths.power),
            of_load(loads.power),
        );
        at.x += GAP as u16;
    }
    let phrases = model.phrases(gpu);
    for further in fitting(widths, &phrases, at) {
        let value = further.read(gpu, model.details(gpu.index), painter.glyphs);
        let is_bad = further == Further::Ecc && value.value().is_some_and(|count| count != "0");
        at.put(painter, further.label(), theme.dim);
        let value = align_right(&shown(&value, Clone::clone), further.value_width());
        at.put_number(
            painter,
            &value,
            fade(if is_bad { theme.alarm } else { theme.plain }),
        );
        at.x += GAP as u16;
    }
    let room = usize::from(at.end.saturating_sub(at.x));
    for (place, Segment { text, level }) in fit_phrases(&phrases, room).into_iter().enumerate() {
        at.put(painter, if place > 0 { ", " } else { "" }, theme.dim);
        at.put(painter, &text, theme.of_level(level));
    }
}

/// The further readings beside which there is room for all that the first phrase has to say, where somebody should know.
fn fitting(widths: &Widths, phrases: &[Phrase], at: Cursor) -> impl Iterator<Item = Further> {
    let urgent = phrases.first().filter(|phrase| phrase.level <= Level::Warn);
    let words = urgent.map_or(0, |phrase| phrase.long.width());
    let mut room = usize::from(at.end.saturating_sub(at.x)).saturating_sub(words);
    widths
        .further
        .into_iter()
        .flatten()
        .take_while(move |further| {
            let left = room.checked_sub(further.width() + GAP);
            room = left.unwrap_or(0);
            left.is_some()
        })
}

/// Where on a line the next part stands.
#[derive(Clone, Copy)]
pub(super) struct Cursor {
    pub(super) x: u16,
    pub(super) y: u16,
    pub(super) end: u16,
}

impl Cursor {
    pub(super) fn put(&mut self, painter: &mut Painter<'_>, text: &str, style: Style) {
        self.x += painter.text(self.x, self.y, self.end.saturating_sub(self.x), text, style);
    }

    /// A number that stands right; its blanks are not underlined.
    pub(super) fn put_number(&mut self, painter: &mut Painter<'_>, text: &str, style: Style) {
        let number = text.trim_start();
        self.x += (text.len() - number.len()) as u16;
        self.put(
            painter,
            number,
            if number == ABSENT {
                painter.theme.dim
            } else {
                style
            },
        );
    }
}

pub(super) fn memory(gpu: &GpuSample) -> String {
    let total = gpu.memory.total_bytes.value().copied();
    shown(&gpu.memory.used_bytes, |used| {
        describe::used_of(*used, total)
    })
}

pub(super) fn power(gpu: &GpuSample) -> String {
    let limit = gpu.power.limit_watts.value().copied();
    shown(&gpu.power.draw_watts, |draw| {
        describe::draw_of(*draw, limit)
    })
}
