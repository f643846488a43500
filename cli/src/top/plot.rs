//! Charts of one value over time, with the area below the value filled. A second value may be drawn
//! as a line on the same axis. Other charts show the parts of a whole, stacked.

use std::{cmp::Reverse, iter};

use gpumon_probe::model::fields::Unit;
use ratatui::{layout::Rect, style::Style};
use unicode_width::UnicodeWidthStr;

use super::{
    metrics::ChartUnit,
    painter::Painter,
    text::{format_day_and_minute, format_hour_and_minute, format_time, wrap},
};

/// The minimum width of a chart with axis labels.
const MIN_WIDTH_WITH_AXIS: u16 = 36;
/// The minimum width of a chart of percentages with axis labels. It is smaller than for other
/// values, because percentages have shorter labels.
const MIN_WIDTH_WITH_PERCENTAGES: u16 = 24;
/// The minimum height of a chart with a time axis.
const MIN_HEIGHT_WITH_TIMES: u16 = 6;
/// The minimum height of a chart with guide lines.
const MIN_HEIGHT_WITH_GUIDES: u16 = 2;
/// The minimum height of a chart with a second value. In a lower chart, the line of this value
/// would hide the filled area.
const MIN_HEIGHT_WITH_OVERLAY: u16 = 4;
const AXIS_WIDTH: u16 = 10;
/// The time axis of a chart shows dates if the chart covers at least this time.
const DAY_MS: u64 = 24 * 60 * 60 * 1000;
const PERCENTAGE_AXIS_WIDTH: u16 = 6;

pub(super) struct Plot<'a> {
    pub(super) title: String,
    /// The current values, shown at the right end of the title.
    pub(super) now: Vec<(String, Style)>,
    pub(super) style: Style,
    pub(super) unit: Unit,
    /// The upper end of the axis, if known.
    pub(super) limit: Option<f64>,
    pub(super) span_ms: u64,
    pub(super) end_ms: u64,
    /// A function that returns the given number of values, oldest first.
    pub(super) values: &'a dyn Fn(usize) -> Vec<Option<f64>>,
    pub(super) overlay: Option<Overlay<'a>>,
    /// The parts to draw instead of a single value.
    pub(super) stack: Option<Stack<'a>>,
    /// The reason why there are no values, if known.
    pub(super) reason: Option<String>,
    pub(super) is_selected: bool,
}

/// A second value, drawn as a line on the axis of the first value.
pub(super) struct Overlay<'a> {
    pub(super) style: Style,
    pub(super) values: &'a dyn Fn(usize) -> Vec<Option<f64>>,
}

/// The parts of a whole, which fill the height of the chart in each column. A legend follows below.
pub(super) struct Stack<'a> {
    pub(super) parts: &'a [StackPart],
    /// A function that returns the given number of values of the part at a position.
    pub(super) values: &'a dyn Fn(usize, usize) -> Vec<Option<f64>>,
}

pub(super) struct StackPart {
    /// The letter that fills the part, because its color alone may not be visible.
    pub(super) letter: char,
    pub(super) label: &'static str,
    pub(super) style: Style,
}

impl Plot<'_> {
    /// Draws the chart. The rightmost column of the area stays empty.
    pub(super) fn draw(&self, painter: &mut Painter<'_>, area: Rect) {
        let area = Rect {
            width: area.width.saturating_sub(1),
            ..area
        };
        if area.height < 2 || area.width < 4 {
            return;
        }
        self.draw_title(painter, area);
        let is_wide = area.width >= MIN_WIDTH_WITH_AXIS;
        let has_axis =
            is_wide || (self.unit == Unit::Percent && area.width >= MIN_WIDTH_WITH_PERCENTAGES);
        let has_times = area.height >= MIN_HEIGHT_WITH_TIMES && area.width >= MIN_WIDTH_WITH_AXIS;
        let gutter = match (has_axis, is_wide) {
            (false, _) => 0,
            (true, false) => PERCENTAGE_AXIS_WIDTH,
            (true, true) => AXIS_WIDTH,
        };
        let has_legend = self.stack.is_some() && area.height > 2;
        let inner = Rect {
            x: area.x + gutter,
            y: area.y + 1,
            width: area.width - gutter,
            height: area.height - 1 - u16::from(has_times) - u16::from(has_legend),
        };
        let (across, up) = painter.glyphs.dots_per_cell();
        let values = (self.values)(usize::from(inner.width) * across);
        let floor = self.unit.axis_start();
        let largest = values
            .iter()
            .flatten()
            .fold(0.0_f64, |largest, value| largest.max(*value));
        let ceiling = self
            .limit
            .filter(|limit| *limit >= largest)
            .unwrap_or_else(|| self.unit.axis_end(largest));
        let levels = usize::from(inner.height) * up;
        let heights: Vec<Option<usize>> = values
            .iter()
            .map(|value| height_in_dots(*value, floor, ceiling, levels))
            .collect();
        draw_guides(painter, inner);
        for line in 0..inner.height {
            let below = usize::from(inner.height - 1 - line) * up;
            for (x, columns) in (inner.x..).zip(heights.chunks(across)) {
                let within: [Option<usize>; 2] = std::array::from_fn(|at| {
                    Some((*columns.get(at)?)?.saturating_sub(below).min(up))
                });
                let symbol = painter.glyphs.column_character(&within[..columns.len()]);
                if symbol != ' ' {
                    painter.draw_cell(x, inner.y + line, symbol, self.style);
                }
            }
        }
        if let Some(overlay) = self
            .overlay
            .as_ref()
            .filter(|_| inner.height >= MIN_HEIGHT_WITH_OVERLAY)
        {
            overlay.draw(painter, inner, |value| {
                height_in_dots(value, floor, ceiling, levels)
            });
        }
        if let Some(stack) = &self.stack {
            let legend = stack.draw(painter, inner);
            if has_legend {
                painter.draw_pieces(inner.x, inner.bottom(), inner.width, &legend);
            }
        }
        if let Some(reason) = self
            .reason
            .as_ref()
            .filter(|_| values.iter().all(Option::is_none))
        {
            let lines = wrap(reason, inner.width.into());
            let above = usize::from(inner.height).saturating_sub(lines.len()) as u16 / 2;
            for (line, text) in (inner.y + above..inner.bottom()).zip(lines) {
                painter.draw_text(inner.x, line, inner.width, &text, painter.theme.dim);
            }
        }
        if has_axis {
            let glyphs = painter.glyphs;
            let label = |value: f64| self.unit.format(value, glyphs);
            let (top, bottom) = (label(ceiling), label(floor));
            let dim = painter.theme.dim;
            painter.draw_text_right(area.x, inner.y, gutter - 1, &top, dim);
            if inner.height > 1 {
                painter.draw_text_right(area.x, inner.bottom() - 1, gutter - 1, &bottom, dim);
            }
            if inner.height > 4 {
                painter.draw_text_right(
                    area.x,
                    inner.y + inner.height / 2,
                    gutter - 1,
                    &label(f64::midpoint(floor, ceiling)),
                    dim,
                );
            }
        }
        if has_times {
            self.draw_times(
                painter,
                Rect {
                    y: area.bottom() - 1,
                    height: 1,
                    ..inner
                },
            );
        }
    }

    fn draw_title(&self, painter: &mut Painter<'_>, area: Rect) {
        let style = if self.is_selected {
            painter.theme.strong
        } else {
            painter.theme.dim
        };
        let columns = self
            .now
            .iter()
            .map(|(text, _)| text.width() as u16)
            .sum::<u16>()
            .min(area.width);
        painter.draw_text(
            area.x,
            area.y,
            area.width.saturating_sub(columns + 1),
            &self.title,
            style,
        );
        painter.draw_pieces(area.right() - columns, area.y, columns, &self.now);
    }

    fn draw_times(&self, painter: &mut Painter<'_>, area: Rect) {
        let dim = painter.theme.dim;
        let begin = self.end_ms.saturating_sub(self.span_ms);
        let label = match self.span_ms {
            0..600_000 => format_time,
            600_000..DAY_MS => format_hour_and_minute,
            DAY_MS.. => format_day_and_minute,
        };
        painter.draw_text(area.x, area.y, area.width, &label(begin), dim);
        if area.width >= 40 {
            let middle = label(begin + self.span_ms / 2);
            painter.draw_text(
                area.x + (area.width - middle.width() as u16) / 2,
                area.y,
                area.width,
                &middle,
                dim,
            );
        }
        painter.draw_text_right(area.x, area.y, area.width, &label(self.end_ms), dim);
    }
}

impl Overlay<'_> {
    fn draw(
        &self,
        painter: &mut Painter<'_>,
        area: Rect,
        height: impl Fn(Option<f64>) -> Option<usize>,
    ) {
        let (across, up) = painter.glyphs.dots_per_cell();
        let heights: Vec<_> = (self.values)(usize::from(area.width) * across)
            .into_iter()
            .map(height)
            .collect();
        // Each column covers the range from the previous column's value to its own value, so that
        // the line has no gap where the value jumps.
        let spans: Vec<Option<(usize, usize)>> = (0..heights.len())
            .map(|at| {
                let to = heights[at]?;
                let from = at
                    .checked_sub(1)
                    .and_then(|before| heights[before])
                    .unwrap_or(to);
                Some(if from < to {
                    (from, to)
                } else {
                    (to - 1, from.max(to))
                })
            })
            .collect();
        for line in 0..area.height {
            let below = usize::from(area.height - 1 - line) * up;
            for (x, columns) in (area.x..).zip(spans.chunks(across)) {
                let within = |at: usize| at.saturating_sub(below).min(up);
                let dots: [(usize, usize); 2] = std::array::from_fn(|at| {
                    columns
                        .get(at)
                        .copied()
                        .flatten()
                        .map_or((0, 0), |(from, to)| (within(from), within(to)))
                });
                let symbol = painter.glyphs.line_character(&dots[..columns.len()]);
                if symbol != ' ' {
                    painter.draw_cell(x, area.y + line, symbol, self.style);
                }
            }
        }
    }
}

impl Stack<'_> {
    /// Draws the parts from top to bottom, and returns the legend of the drawn parts, the largest
    /// first.
    fn draw(&self, painter: &mut Painter<'_>, area: Rect) -> Vec<(String, Style)> {
        let lines = 0..self.parts.len();
        let lines: Vec<_> = lines
            .map(|part| (self.values)(part, area.width.into()))
            .collect();
        let mut cells = vec![0; self.parts.len()];
        for column in 0..area.width {
            let share = |line: &Vec<_>| line.get(usize::from(column)).copied().flatten();
            let shares: Vec<_> = lines
                .iter()
                .map(|line| share(line).unwrap_or(0.0))
                .collect();
            let mut y = area.y;
            for (place, rows) in divide_rows(&shares, area.height).into_iter().enumerate() {
                let StackPart { letter, style, .. } = self.parts[place];
                for y in y..y + rows {
                    painter.draw_cell(area.x + column, y, letter, style);
                }
                y += rows;
                cells[place] += usize::from(rows);
            }
        }
        let mut drawn: Vec<_> = iter::zip(cells, self.parts)
            .filter(|(cells, _)| *cells > 0)
            .collect();
        drawn.sort_by_key(|(cells, _)| Reverse(*cells));
        let legend = drawn.into_iter().flat_map(|(_, part)| {
            let label = (format!(" {}  ", part.label), painter.theme.plain);
            [(part.letter.to_string(), part.style), label]
        });
        legend.collect()
    }
}

/// Divides the rows of a column among shares, as seats are divided among parties (Sainte-Laguë). A
/// single row goes to the largest share. Without any share, nothing is divided.
fn divide_rows(shares: &[f64], rows: u16) -> Vec<u16> {
    let mut divided = vec![0; shares.len()];
    for _ in 0..rows {
        let quotients = iter::zip(shares, &divided)
            .map(|(share, rows)| share / f64::from(2 * u32::from(*rows) + 1));
        let largest = quotients
            .enumerate()
            .max_by(|(_, one), (_, other)| one.total_cmp(other));
        if let Some((place, _)) = largest.filter(|(_, quotient)| *quotient > 0.0) {
            divided[place] += 1;
        }
    }
    divided
}

/// Draws guide lines at the upper end and in the middle of the axis.
fn draw_guides(painter: &mut Painter<'_>, area: Rect) {
    if area.height < MIN_HEIGHT_WITH_GUIDES {
        return;
    }
    let middle = (area.y + area.height / 2, area.height % 2 == 1);
    for (y, is_middle) in [(area.y, false), middle] {
        for x in area.left()..area.right() {
            painter.draw_cell(
                x,
                y,
                painter.glyphs.guide_character(is_middle),
                painter.theme.dim,
            );
        }
    }
}

/// Returns the height of a value in dots. A present value has at least one dot, so that zero
/// differs from a gap.
fn height_in_dots(value: Option<f64>, floor: f64, ceiling: f64, levels: usize) -> Option<usize> {
    let share = ((value? - floor) / (ceiling - floor)).clamp(0.0, 1.0);
    Some(((share * levels as f64).round() as usize).max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_divided_in_proportion_to_shares() {
        let shares = [8.0, 62.0, 0.0, 30.0];
        assert_eq!(divide_rows(&shares, 1), [0, 1, 0, 0]);
        assert_eq!(divide_rows(&shares, 3), [0, 2, 0, 1]);
        assert_eq!(divide_rows(&shares, 13), [1, 8, 0, 4]);
        assert_eq!(divide_rows(&[0.0, 0.0], 3), [0, 0]);
    }

    #[test]
    fn zero_is_drawn_as_dot_unlike_absence() {
        assert_eq!(height_in_dots(None, 0.0, 100.0, 8), None);
        assert_eq!(height_in_dots(Some(0.0), 0.0, 100.0, 8), Some(1));
        assert_eq!(height_in_dots(Some(50.0), 0.0, 100.0, 8), Some(4));
        assert_eq!(height_in_dots(Some(500.0), 0.0, 100.0, 8), Some(8));
        assert_eq!(height_in_dots(Some(10.0), 20.0, 100.0, 8), Some(1));
    }
}
