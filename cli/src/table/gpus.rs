//! One or two lines per GPU: what it is busy with, memory, temperature, power, and what is the matter, in words.

use anstyle::Effects;
use unicode_width::UnicodeWidthStr;

use super::{
    View,
    column_widths::ColumnWidths,
    fit::{Fit, GAP, Wishes, long_width, words_width},
    history::REACH_MS,
    measure::Measure,
    mig,
    row::{self, Row},
};

use crate::describe::{LONGEST, Load, Phrase, fitted};
use crate::terminal::{
    Layout,
    chart::draw_bar,
    chart::draw_spark,
    line::{Line, cut, pad_end, pad_start},
    style::{DIM, PLAIN, of_level, of_load},
    units::ABSENT,
};

pub(super) fn lines(view: &View<'_>, layout: Layout, kept: Option<&mut ColumnWidths>) -> Vec<Line> {
    let mut rows = Vec::new();
    for gpu in &view.sample.gpus {
        rows.push(row::of_gpu(gpu, view, layout));
        rows.extend(mig::rows(gpu, view, layout));
    }
    let mut measure = Measure::new(&rows);
    let is_steady = kept.is_some();
    if let Some(kept) = kept {
        measure = measure.widened(&kept.gpus);
        kept.gpus = measure;
    }
    let has_past = view.past.is_known() || is_steady;
    let fit = |rows: &[Row]| {
        Fit::new(
            Wishes {
                rows,
                measure: &measure,
                has_past,
                is_steady,
            },
            layout.columns(),
        )
    };
    let mut widths = fit(&rows);
    // One long name does not break everybody's line in two, nor take the room of what is drawn.
    if widths.is_cramped(has_past) {
        for row in rows.iter_mut().filter(|row| !row.is_part) {
            row.name = fitted(&row.name, LONGEST, ellipsis(layout));
        }
        widths = fit(&rows);
    }
    let fit = widths;
    rows.iter()
        .flat_map(|row| {
            Drawing {
                row,
                fit: &fit,
                layout,
                now_ms: view.sample.at_ms,
            }
            .lines()
        })
        .collect()
}

struct Drawing<'a> {
    row: &'a Row,
    fit: &'a Fit,
    layout: Layout,
    now_ms: u64,
}

impl Drawing<'_> {
    fn lines(&self) -> Vec<Line> {
        let Self { row, fit, .. } = self;
        let start = Line::new(PLAIN, pad_start(&row.index, fit.cells.index) + " ");
        let head = [self.name(), self.busy(), self.spark()];
        let (memory, tail) = (
            [self.memory(), self.bar()],
            [self.temperature(), self.power()],
        );
        let mut lines = if fit.two_lines {
            let second = Line::new(PLAIN, " ".repeat(fit.cells.index + 1));
            vec![
                joined(start, head.into_iter().chain(tail)),
                joined(second, memory.into_iter()),
            ]
        } else {
            let cells = head
                .into_iter()
                .chain(memory)
                .chain(tail)
                .chain(self.extras());
            vec![joined(start, cells)]
        };
        self.add_words(&mut lines);
        lines
    }

    /// Beside the numbers where they have room there, else below, as many lines as it takes.
    fn add_words(&self, lines: &mut Vec<Line>) {
        let Self {
            row, fit, layout, ..
        } = self;
        if row.words.is_empty() {
            return;
        }
        let columns = layout.columns();
        let room = fit.beside(columns);
        let has_room = long_width(row) <= room || layout.width.is_none();
        if has_room || words_width(row) <= room {
            let beside = lines.last_mut().expect("a row has a line");
            let missing = (columns - room).saturating_sub(beside.width() + GAP);
            beside.push(PLAIN, " ".repeat(missing + GAP));
            for (number, phrase) in row.words.iter().enumerate() {
                beside.push(PLAIN, if number > 0 { ", " } else { "" });
                beside.push(
                    of_level(phrase.level),
                    if has_room {
                        &phrase.long
                    } else {
                        &phrase.short
                    },
                );
            }
            return;
        }
        lines.extend(self.below(columns));
    }

    /// The words below the numbers, as few lines as hold them. Alone on its line, a phrase can be long.
    fn below(&self, columns: usize) -> Vec<Line> {
        let indent = self.fit.cells.index + 1;
        let room = columns.saturating_sub(indent);
        let text = |phrase: &Phrase| {
            let is_alone = self.row.words.len() == 1 && phrase.long.width() <= room;
            if is_alone {
                phrase.long.clone()
            } else {
                phrase.short.clone()
            }
        };
        let mut lines: Vec<Line> = Vec::new();
        for phrase in &self.row.words {
            let text = text(phrase);
            match lines.last_mut() {
                Some(line) if line.width() + 2 + text.width() <= columns => line.push(PLAIN, ", "),
                _ => lines.push(Line::new(PLAIN, " ".repeat(indent))),
            }
            lines
                .last_mut()
                .expect("a line was begun")
                .push(of_level(phrase.level), text);
        }
        lines
    }

    fn name(&self) -> Line {
        let Self {
            row, fit, layout, ..
        } = self;
        let style = if row.is_part { PLAIN } else { Row::NAME };
        self.cell(
            style,
            pad_end(&cut(&row.name, fit.name, *layout), fit.name),
            fit.name,
        )
    }

    fn busy(&self) -> Line {
        self.load(
            self.row.loads.utilization,
            &pad_start(&self.row.busy, self.fit.cells.busy),
            self.fit.cells.busy,
        )
    }

    fn spark(&self) -> Line {
        let (columns, rich) = (self.fit.spark, self.layout.unicode);
        let past = &self.row.past;
        let curve = if columns == 0 {
            String::new()
        } else {
            draw_spark(past, self.now_ms, REACH_MS, columns, 100.0, rich)
        };
        self.cell(Row::PAST, curve, columns)
    }

    /// What is absent has no unit.
    fn memory(&self) -> Line {
        let Self { row, fit, .. } = self;
        let used = pad_start(&row.used, fit.cells.used);
        let text = match (row.used.as_str(), row.total.as_str()) {
            (ABSENT, "") => used,
            (_, "") => used + " GiB",
            (_, total) => format!("{used}/{} GiB", pad_end(total, fit.cells.total)),
        };
        self.load(
            row.loads.memory,
            &pad_end(&text, fit.memory()),
            fit.memory(),
        )
    }

    fn bar(&self) -> Line {
        let Self {
            row, fit, layout, ..
        } = self;
        let Some(share) = row.memory_share else {
            return Line::new(PLAIN, " ".repeat(fit.bar));
        };
        if fit.bar == 0 {
            return Line::default();
        }
        let (full, empty) = draw_bar(share, fit.bar, layout.unicode);
        let style = of_load(row.loads.memory);
        let style = style.effects(style.get_effects().remove(Effects::UNDERLINE));
        let mut line = Line::new(row.style(style), full);
        line.push(DIM, empty);
        line
    }

    fn temperature(&self) -> Line {
        let width = self.fit.cells.temperature;
        self.load(
            self.row.loads.temperature,
            &pad_start(&self.row.temperature, width),
            width,
        )
    }

    fn power(&self) -> Line {
        let Self { row, fit, .. } = self;
        let draw = pad_start(&row.draw, fit.cells.draw);
        let text = match (row.draw.as_str(), row.limit.as_str()) {
            ("" | ABSENT, "") => draw,
            (_, "") => draw + " W",
            (_, limit) => format!("{draw}/{} W", pad_end(limit, fit.cells.limit)),
        };
        self.load(row.loads.power, &pad_end(&text, fit.power()), fit.power())
    }

    fn extras(&self) -> impl Iterator<Item = Line> {
        self.row
            .extras
            .iter()
            .zip(self.fit.cells.extras)
            .map(|(extra, width)| self.cell(PLAIN, pad_end(extra, width), width))
    }

    /// A number in the style of its load; what is absent has none, and blanks are not underlined.
    fn load(&self, load: Load, text: &str, width: usize) -> Line {
        let number = text.trim();
        let style = if number == ABSENT { DIM } else { of_load(load) };
        let (before, after) = text.split_once(number).unwrap_or_default();
        let mut line = self.cell(PLAIN, before.to_owned(), width);
        line.extend(self.cell(style, number.to_owned(), width));
        line.extend(self.cell(PLAIN, after.to_owned(), width));
        line
    }

    /// A cell of no width is left out.
    fn cell(&self, style: anstyle::Style, text: String, width: usize) -> Line {
        if width == 0 {
            Line::default()
        } else {
            Line::new(self.row.style(style), text)
        }
    }
}

fn ellipsis(layout: Layout) -> char {
    if layout.unicode { '…' } else { '~' }
}

/// The cells that are there, with gaps between them.
fn joined(mut start: Line, cells: impl Iterator<Item = Line>) -> Line {
    for (number, cell) in cells.filter(|cell| cell.width() > 0).enumerate() {
        start.push(PLAIN, " ".repeat(if number == 0 { 0 } else { GAP }));
        start.extend(cell);
    }
    start
}
