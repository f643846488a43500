//! What is the matter now, and what happened.

use ratatui::{layout::Rect, style::Style};

use super::scroll_view::{Line, scroll_view};
use crate::{
    describe::{Level, of_event},
    table::units::compact_duration,
    top::{
        model::Model,
        painter::Painter,
        state::State,
        text::{clock, left, printable, right, wrap},
    },
};

pub(super) fn events(painter: &mut Painter<'_>, area: Rect, model: &Model, state: &State) {
    let style = |level: Level| painter.theme.of_level(level);
    let columns = usize::from(area.width);
    let dim = painter.theme.dim;
    let mut lines: Vec<Line> = Vec::new();
    let is_shown = |gpu: Option<u32>| state.gpu.is_none_or(|index| gpu.is_none_or(|gpu| gpu == index));
    for gpu in model.gpus().iter().filter(|gpu| is_shown(Some(gpu.index))) {
        for condition in &gpu.conditions {
            let since = format!("for {}", compact_duration(model.now_ms().saturating_sub(condition.since_ms)));
            let text = printable(&condition.text);
            tell(&mut lines, columns, (&since, dim), Some(gpu.index), &text, style(condition.severity.into()));
        }
    }
    if lines.is_empty() {
        lines.push(vec![("Nothing is the matter.".to_owned(), painter.theme.well)]);
    }
    lines.push(Line::new());
    for event in model.events.iter().rev() {
        let gpu = event.gpu.as_ref().map(|gpu| gpu.index);
        if is_shown(gpu) {
            let (level, text) = of_event(event);
            tell(&mut lines, columns, (&clock(event.at_ms), dim), gpu, &printable(&text), style(level));
        }
    }
    if model.events.is_empty() {
        lines.push(vec![("Nothing has happened since this began to look.".to_owned(), dim)]);
    }
    scroll_view(painter, area, None, &lines, state.view_scroll);
}

/// When, where and what, in as many lines as it takes.
fn tell(lines: &mut Vec<Line>, columns: usize, (when, dim): (&str, Style), gpu: Option<u32>, text: &str, style: Style) {
    let gpu = gpu.map_or_else(String::new, |gpu| format!("GPU {gpu}"));
    let margin = format!("{}  {}  ", right(when, 9), left(&gpu, 6));
    let width = margin.chars().count();
    for (place, part) in wrap(text, columns.saturating_sub(width)).into_iter().enumerate() {
        let margin = if place == 0 { margin.clone() } else { " ".repeat(width) };
        lines.push(vec![(margin, dim), (part, style)]);
    }
}
