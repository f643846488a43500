//! A chart: one number over time, filled from below.

use gpumon_probe::model::fields::Unit;
use ratatui::{layout::Rect, style::Style};
use unicode_width::UnicodeWidthStr;

use super::{
    metrics::Drawn,
    painter::Painter,
    text::{clock, hour_and_minute, wrap},
};

/// A chart narrower than this has no room for what stands beside its axis.
const WITH_AXIS: u16 = 36;
/// A chart lower than this has no room for times.
const WITH_TIMES: u16 = 6;
const AXIS: u16 = 10;

pub(super) struct Plot<'a> {
    pub(super) title: String,
    /// What stands at the right of the title: the value now.
    pub(super) now: String,
    pub(super) style: Style,
    pub(super) unit: Unit,
    /// The upper end of the axis, where it is known.
    pub(super) limit: Option<f64>,
    pub(super) span_ms: u64,
    pub(super) end_ms: u64,
    /// Gives so many values, the newest last.
    pub(super) values: &'a dyn Fn(usize) -> Vec<Option<f64>>,
    /// Why there are none, where it is known.
    pub(super) reason: Option<String>,
    pub(super) is_selected: bool,
}

impl Plot<'_> {
    /// Draws it, with a free column at its right.
    pub(super) fn draw(&self, painter: &mut Painter<'_>, area: Rect) {
        let area = Rect { width: area.width.saturating_sub(1), ..area };
        if area.height < 2 || area.width < 4 {
            return;
        }
        self.draw_title(painter, area);
        let has_axis = area.width >= WITH_AXIS;
        let has_times = area.height >= WITH_TIMES && area.width >= WITH_AXIS;
        let gutter = if has_axis { AXIS } else { 0 };
        let inner = Rect {
            x: area.x + gutter,
            y: area.y + 1,
            width: area.width - gutter,
            height: area.height - 1 - u16::from(has_times),
        };
        let (across, up) = painter.glyphs.dots();
        let values = (self.values)(usize::from(inner.width) * across);
        let floor = self.unit.floor();
        let largest = values.iter().flatten().fold(0.0_f64, |largest, value| largest.max(*value));
        let ceiling = self.limit.filter(|limit| *limit >= largest).unwrap_or_else(|| self.unit.ceiling(largest));
        let levels = usize::from(inner.height) * up;
        let heights: Vec<Option<usize>> = values.iter().map(|value| height(*value, floor, ceiling, levels)).collect();
        for line in 0..inner.height {
            let below = usize::from(inner.height - 1 - line) * up;
            let text: String = heights
                .chunks(across)
                .map(|columns| {
                    let within: Vec<_> = columns
                        .iter()
                        .map(|height| height.map(|height| height.saturating_sub(below).min(up)))
                        .collect();
                    painter.glyphs.column(&within)
                })
                .collect();
            painter.text(inner.x, inner.y + line, inner.width, &text, self.style);
        }
        if let Some(reason) = self.reason.as_ref().filter(|_| values.iter().all(Option::is_none)) {
            let lines = wrap(reason, inner.width.into());
            let above = usize::from(inner.height).saturating_sub(lines.len()) as u16 / 2;
            for (line, text) in (inner.y + above..inner.bottom()).zip(lines) {
                painter.text(inner.x, line, inner.width, &text, painter.theme.dim);
            }
        }
        if has_axis {
            let label = |value: f64| self.unit.format(value, painter.glyphs);
            let (top, bottom) = (label(ceiling), label(floor));
            let dim = painter.theme.dim;
            painter.text_right(area.x, inner.y, AXIS - 1, &top, dim);
            if inner.height > 1 {
                painter.text_right(area.x, inner.bottom() - 1, AXIS - 1, &bottom, dim);
            }
        }
        if has_times {
            self.draw_times(painter, Rect { y: area.bottom() - 1, height: 1, ..inner });
        }
    }

    fn draw_title(&self, painter: &mut Painter<'_>, area: Rect) {
        let style = if self.is_selected { painter.theme.strong } else { painter.theme.dim };
        let value_columns = self.now.width() as u16;
        painter.text(area.x, area.y, area.width.saturating_sub(value_columns + 1), &self.title, style);
        painter.text_right(area.x, area.y, area.width, &self.now, self.style);
    }

    fn draw_times(&self, painter: &mut Painter<'_>, area: Rect) {
        let dim = painter.theme.dim;
        let begin = self.end_ms.saturating_sub(self.span_ms);
        let label = |at_ms: u64| if self.span_ms < 600_000 { clock(at_ms) } else { hour_and_minute(at_ms) };
        painter.text(area.x, area.y, area.width, &label(begin), dim);
        if area.width >= 40 {
            let middle = label(begin + self.span_ms / 2);
            painter.text(area.x + (area.width - middle.width() as u16) / 2, area.y, area.width, &middle, dim);
        }
        painter.text_right(area.x, area.y, area.width, &label(self.end_ms), dim);
    }
}

/// How many dots high a value stands. One that is there has at least one dot, so that a gap can be told from nothing.
fn height(value: Option<f64>, floor: f64, ceiling: f64, levels: usize) -> Option<usize> {
    let share = ((value? - floor) / (ceiling - floor)).clamp(0.0, 1.0);
    Some(((share * levels as f64).round() as usize).max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_read_has_no_dot_and_nothing_done_has_one() {
        assert_eq!(height(None, 0.0, 100.0, 8), None);
        assert_eq!(height(Some(0.0), 0.0, 100.0, 8), Some(1));
        assert_eq!(height(Some(50.0), 0.0, 100.0, 8), Some(4));
        assert_eq!(height(Some(500.0), 0.0, 100.0, 8), Some(8));
        assert_eq!(height(Some(10.0), 20.0, 100.0, 8), Some(1));
    }
}
