//! The lines that describe GPUs: current and recent utilization, memory, temperature, power,
//! further readings if there is room, and phrases for important states. The table prints these
//! lines, and `gpumon top` draws them.
//!
//! [`cells`] formats the readings, and [`arrangement`] determines the positions of the cells. A
//! line consists of pieces of text with a [`Role`], which the caller maps to a style.

mod arrangement;
mod cells;

use unicode_width::UnicodeWidthStr;

use self::{
    arrangement::{GAP, Slot, joined_width},
    cells::{CellsKind, FurtherReading},
};
use crate::{
    describe::{self, Level, LoadLevel, Phrase},
    terminal::{
        Layout,
        line::{self, pad_end, pad_start},
        units::ABSENT,
    },
};

pub(crate) use self::{
    arrangement::{Arrangement, CellWidths, LineOptions},
    cells::{GpuCells, LineContext, describe_gpu},
};

/// The meaning of a piece of text, which determines its style.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    Plain,
    Name,
    /// Labels, absent values, and old values.
    Dim,
    /// The sparkline of utilization over the last minute.
    Past,
    Number(LoadLevel),
    Bar(LoadLevel),
    Words(Level),
}

type Line = line::Line<Role>;

/// The lines of one GPU.
#[derive(Debug, Clone, Copy)]
pub(crate) struct GpuLines<'a> {
    pub(crate) cells: &'a GpuCells,
    pub(crate) widths: &'a CellWidths,
    pub(crate) arrangement: &'a Arrangement,
    pub(crate) layout: Layout,
}

impl GpuLines<'_> {
    /// Returns the lines. `past` has a value between 0 and 1 for each column of the sparkline.
    pub(crate) fn draw(&self, past: &[Option<f64>]) -> Vec<Line> {
        let arrangement = self.arrangement;
        let mut lines: Vec<_> = (0..)
            .zip(&arrangement.lines)
            .map(|(number, line)| {
                let (mut drawn, mut excess) = (self.draw_line_start(number), 0);
                let shown = line.iter().filter(|(slot, _)| self.is_shown(*slot));
                for (place, (slot, width)) in shown.enumerate() {
                    let cell = self.draw_cell(*slot, *width, past);
                    // The numbers of a total may be wider than their columns. The excess width is
                    // taken from the gap before the number, and the rest from the gaps after it.
                    excess += cell.width().saturating_sub(*width);
                    let gap = if place == 0 { 0 } else { GAP };
                    let taken = excess.min(gap.saturating_sub(1));
                    excess -= taken;
                    drawn.push(Role::Plain, " ".repeat(gap - taken));
                    drawn.extend(cell);
                }
                drawn
            })
            .collect();
        self.add_phrases(&mut lines);
        lines
    }

    /// Draws the start of a line: the index of a GPU, or the name of a total. The name of a total
    /// may extend from the index column into the name column.
    fn draw_line_start(&self, number: usize) -> Line {
        let index = match (number, self.cells.kind) {
            (0, CellsKind::Total) => {
                let is_named = self.arrangement.name_width() > 0;
                let name = if is_named { "Total" } else { "all" };
                return Line::new(Role::Name, pad_end(name, self.widths.index + 1));
            }
            (0, _) => self.cells.index.as_str(),
            _ => "",
        };
        Line::new(Role::Plain, pad_start(index, self.widths.index) + " ")
    }

    /// Returns `true` if a cell is shown. Further readings are hidden if an urgent phrase would not
    /// fit next to them.
    fn is_shown(&self, slot: Slot) -> bool {
        let is_urgent = self
            .cells
            .words
            .first()
            .is_some_and(|phrase| phrase.level <= Level::Warn);
        !matches!(slot, Slot::Further(_))
            || !is_urgent
            || self.layout.width.is_none()
            || self.cells.long_words_width() <= self.columns_left_for_phrases(|_| true)
    }

    /// Returns the width available for phrases to the right of the cells.
    fn columns_left_for_phrases(&self, is_shown: impl Fn(Slot) -> bool) -> usize {
        let line = self.arrangement.lines.last().into_iter().flatten();
        let shown = line.filter(|(slot, _)| is_shown(*slot));
        let taken: usize = shown.map(|(_, width)| width + GAP).sum();
        self.arrangement
            .columns
            .saturating_sub(self.widths.index + 1 + taken)
    }

    fn draw_cell(&self, slot: Slot, width: usize, past: &[Option<f64>]) -> Line {
        let Self {
            cells,
            widths,
            layout,
            ..
        } = self;
        let glyphs = layout.glyphs;
        let line = match slot {
            Slot::Name => {
                let role = if cells.kind == CellsKind::Part {
                    Role::Plain
                } else {
                    Role::Name
                };
                // The word `Total` starts in the index column and may extend into the name column.
                // The width that it uses there is not available for the rest of the name.
                let written = "Total".len().saturating_sub(widths.index + 1);
                let width = if cells.kind == CellsKind::Total {
                    width - written.min(width)
                } else {
                    width
                };
                let name = describe::fit_name(&cells.name, width, *layout);
                Line::new(role, pad_end(&name, width))
            }
            Slot::Utilization => style_number(
                cells.loads.utilization,
                &pad_start(&cells.utilization, width),
            ),
            Slot::Past => Line::new(
                Role::Past,
                pad_end(&glyphs.draw_sparkline(past.iter().copied()), width),
            ),
            Slot::Memory => {
                let text = format_with_limit(&cells.used, widths.used, &cells.total, "GiB");
                style_number(cells.loads.memory, &pad_end(&text, width))
            }
            Slot::Bar => match cells.memory_share {
                Some(share) => {
                    let (full, empty) = glyphs.draw_bar(share, width);
                    let mut line = Line::new(Role::Bar(cells.loads.memory), full);
                    line.push(Role::Dim, empty);
                    line
                }
                None => Line::new(Role::Plain, " ".repeat(width)),
            },
            Slot::Temperature => style_number(
                cells.loads.temperature,
                &pad_start(&cells.temperature, width),
            ),
            Slot::Power => {
                let text = format_with_limit(&cells.draw, widths.draw, &cells.limit, "W");
                style_number(cells.loads.power, &pad_end(&text, width))
            }
            Slot::Further(place) => {
                let (further, value) = (FurtherReading::ALL[place], &cells.further[place]);
                let label = if value.is_empty() {
                    ""
                } else {
                    further.label()
                };
                let role = match (further, value.as_str()) {
                    (_, ABSENT) => Role::Dim,
                    (FurtherReading::Ecc, errors) if errors != "0" => Role::Words(Level::Act),
                    _ => Role::Plain,
                };
                let columns = width - further.label().len();
                let mut line = Line::new(Role::Dim, pad_end(label, further.label().len()));
                line.push(role, pad_start(value, columns));
                line
            }
        };
        if cells.is_stale {
            line.map(|_| Role::Dim)
        } else {
            line
        }
    }

    /// Adds the phrases to the right of the numbers if there is room. Otherwise, adds lines below
    /// if several lines are allowed.
    fn add_phrases(&self, lines: &mut Vec<Line>) {
        let (GpuCells { words, limits, .. }, layout) = (self.cells, self.layout);
        let room = match layout.width {
            Some(_) => self.columns_left_for_phrases(|slot| self.is_shown(slot)),
            None => usize::MAX,
        };
        let has_phrases = !words.is_empty() || limits.is_some();
        let Some(last) = lines.last_mut().filter(|_| has_phrases) else {
            return;
        };
        let in_one_line = || (!self.arrangement.may_break).then(|| fit_first_phrases(words, room));
        let pieces = fit_phrases(words, room).or_else(in_one_line);
        match pieces {
            Some(mut pieces) => {
                let taken = if pieces.is_empty() {
                    0
                } else {
                    pieces_width(&pieces) + 2
                };
                pieces.extend(limits.as_ref().and_then(|Phrase { short, long, level }| {
                    let mut texts = [long, short].into_iter();
                    let text = texts.find(|text| taken + text.width() <= room)?;
                    Some((*level, text.clone()))
                }));
                last.push(Role::Plain, " ".repeat(GAP));
                last.extend(join_pieces(pieces));
            }
            None => lines.extend(self.draw_phrase_lines()),
        }
    }

    /// Draws the phrases in as few lines as possible. The long form is used only if there is a
    /// single phrase and its long form fits.
    fn draw_phrase_lines(&self) -> Vec<Line> {
        let indent = self.widths.index + 1;
        let columns = self.arrangement.columns;
        let words = &self.cells.words;
        let is_alone = words.len() == 1 && words[0].long.width() <= columns.saturating_sub(indent);
        let mut lines: Vec<Line> = Vec::new();
        for phrase in words {
            let text = if is_alone {
                &phrase.long
            } else {
                &phrase.short
            };
            match lines.last_mut() {
                Some(line) if line.width() + 2 + text.width() <= columns => {
                    line.push(Role::Plain, ", ");
                    line.push(Role::Words(phrase.level), text);
                }
                _ => {
                    let mut line = Line::new(Role::Plain, " ".repeat(indent));
                    line.push(Role::Words(phrase.level), text);
                    lines.push(line);
                }
            }
        }
        lines
    }
}

/// Formats a right-aligned amount with its limit, such as `78.2/140 GiB`. An absent amount has no
/// unit.
fn format_with_limit(amount: &str, columns: usize, limit: &str, unit: &str) -> String {
    let aligned = pad_start(amount, columns);
    match (amount, limit) {
        ("" | ABSENT, "") => aligned,
        (_, "") => format!("{aligned} {unit}"),
        (_, limit) => format!("{aligned}/{limit} {unit}"),
    }
}

/// Styles a number by its load. An absent number is dimmed. Blanks around the number have no style,
/// because some styles underline.
fn style_number(load: LoadLevel, text: &str) -> Line {
    let number = text.trim();
    let role = if number == ABSENT {
        Role::Dim
    } else {
        Role::Number(load)
    };
    let (before, after) = text.split_once(number).unwrap_or_default();
    let mut line = Line::new(Role::Plain, before);
    line.push(role, number);
    line.push(Role::Plain, after);
    line
}

/// The text of a phrase with its importance.
type Piece = (Level, String);

/// Returns all phrases, or `None` if they do not fit. Uses the long forms of all phrases if there
/// is room, otherwise only that of the first phrase, otherwise only short forms.
fn fit_phrases(phrases: &[Phrase], columns: usize) -> Option<Vec<Piece>> {
    [phrases.len(), 1, 0].into_iter().find_map(|long| {
        let pieces: Vec<_> = phrases
            .iter()
            .enumerate()
            .map(|(place, phrase)| {
                let text = if place < long {
                    &phrase.long
                } else {
                    &phrase.short
                };
                (phrase.level, text.clone())
            })
            .collect();
        (pieces_width(&pieces) <= columns).then_some(pieces)
    })
}

/// Returns as many phrases as fit. A final piece states how many phrases are omitted.
fn fit_first_phrases(phrases: &[Phrase], columns: usize) -> Vec<Piece> {
    let first = |count: usize| {
        let first = phrases[..count].iter();
        let mut pieces: Vec<_> = first
            .map(|phrase| (phrase.level, phrase.short.clone()))
            .collect();
        let rest = phrases.get(count).map(|next| next.level);
        pieces.extend(rest.map(|level| (level, format!("{} more", phrases.len() - count))));
        pieces
    };
    let fits = |pieces: &Vec<Piece>| pieces_width(pieces) <= columns;
    let counts = (1..phrases.len()).rev();
    let alone = || vec![(phrases[0].level, phrases[0].short.clone())];
    counts.map(first).find(fits).unwrap_or_else(alone)
}

fn pieces_width(pieces: &[Piece]) -> usize {
    joined_width(pieces.iter().map(|(_, text)| text.as_str()))
}

fn join_pieces(pieces: Vec<Piece>) -> Line {
    let mut line = Line::default();
    for (place, (level, text)) in pieces.into_iter().enumerate() {
        line.push(Role::Dim, if place > 0 { ", " } else { "" });
        line.push(Role::Words(level), text);
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::terminal::screen::Glyphs;

    #[test]
    fn lines_are_not_wider_than_terminal() {
        let gpu = GpuCells {
            index: "0".to_owned(),
            name: "GeForce RTX 4090 Laptop GPU".to_owned(),
            utilization: "100 %".to_owned(),
            used: "113.8".to_owned(),
            total: "141".to_owned(),
            memory_share: Some(0.8),
            temperature: "100 °C".to_owned(),
            draw: "690".to_owned(),
            limit: "700".to_owned(),
            words: vec![new_phrase(
                Level::Act,
                "GPU lost",
                "GPU lost: see gpumon doctor",
            )],
            ..GpuCells::default()
        };
        let part = GpuCells {
            name: "0:0 3g.71gb".to_owned(),
            kind: CellsKind::Part,
            ..GpuCells::default()
        };
        let total = GpuCells {
            used: "11000".to_owned(),
            total: "22000".to_owned(),
            kind: CellsKind::Total,
            ..GpuCells::default()
        };
        let rows = [gpu, part, total];
        let widths = CellWidths::new(&rows);
        for (columns, may_break) in
            (0..=130).flat_map(|columns| [(columns, true), (columns, false)])
        {
            let options = LineOptions {
                columns,
                has_past: true,
                is_steady: !may_break,
                may_break,
            };
            let arrangement = Arrangement::new(&rows, &widths, options);
            for glyphs in Glyphs::ALL {
                let layout = Layout {
                    width: Some(columns),
                    height: None,
                    glyphs,
                };
                for cells in &rows {
                    let lines = GpuLines {
                        cells,
                        widths: &widths,
                        arrangement: &arrangement,
                        layout,
                    };
                    let curve = vec![Some(0.5); arrangement.sparkline_width()];
                    for line in lines.draw(&curve) {
                        assert!(
                            columns < 60 || line.width() <= columns + 4,
                            "{} of {columns}",
                            line.width()
                        );
                    }
                }
            }
        }
    }

    fn new_phrase(level: Level, short: &str, long: &str) -> Phrase {
        Phrase {
            short: short.to_owned(),
            long: long.to_owned(),
            level,
        }
    }

    #[test]
    fn limits_use_only_room_left_by_phrases() {
        let mut cells = GpuCells {
            name: "H200".to_owned(),
            limits: Some(new_phrase(
                Level::Note,
                "Host-bound 62 %",
                "Host-bound 62 %: A process uses 100 % of a core.",
            )),
            ..GpuCells::default()
        };
        let widths = CellWidths::new(std::slice::from_ref(&cells));
        let draw = |cells: &GpuCells, columns| {
            let layout = Layout {
                width: Some(columns),
                height: None,
                glyphs: Glyphs::Braille,
            };
            let options = LineOptions {
                columns,
                has_past: false,
                is_steady: true,
                may_break: false,
            };
            let arrangement = Arrangement {
                columns,
                may_break: false,
                ..Arrangement::new(std::slice::from_ref(cells), &widths, options)
            };
            let lines = GpuLines {
                cells,
                widths: &widths,
                arrangement: &arrangement,
                layout,
            };
            let [line] = lines.draw(&[]).try_into().unwrap();
            let text: String = line
                .into_pieces()
                .into_iter()
                .map(|(text, _)| text)
                .collect();
            text.trim_end().to_owned()
        };
        assert!(draw(&cells, 80).ends_with("  Host-bound 62 %"));
        assert!(draw(&cells, 200).ends_with("  Host-bound 62 %: A process uses 100 % of a core."));
        assert!(!draw(&cells, 30).contains("Host"));
        cells.words = vec![new_phrase(Level::Warn, "NVLink 3 down", "NVLink 3 is down")];
        assert!(draw(&cells, 80).ends_with("  NVLink 3 is down"));
        assert!(draw(&cells, 200).contains("NVLink 3 is down, Host-bound 62 %: A "));
    }

    #[test]
    fn first_phrase_is_complete_and_others_are_counted() {
        let phrases = [
            new_phrase(
                Level::Act,
                "Xid 79: fell off the bus",
                "Xid 79: GPU has fallen off the bus – reboot the machine",
            ),
            new_phrase(
                Level::Warn,
                "NVLink 3 down",
                "NVLink 3 is down: GPUs reach each other more slowly",
            ),
            new_phrase(Level::Note, "power-capped", "power-capped"),
        ];
        let at = |columns| {
            let pieces = fit_phrases(&phrases, columns)
                .unwrap_or_else(|| fit_first_phrases(&phrases, columns));
            let texts: Vec<_> = pieces.into_iter().map(|(_, text)| text).collect();
            texts.join(", ")
        };
        assert!(at(200).ends_with("more slowly, power-capped"));
        assert_eq!(
            at(100),
            "Xid 79: GPU has fallen off the bus – reboot the machine, NVLink 3 down, power-capped"
        );
        assert_eq!(
            at(60),
            "Xid 79: fell off the bus, NVLink 3 down, power-capped"
        );
        assert_eq!(at(50), "Xid 79: fell off the bus, NVLink 3 down, 1 more");
        assert_eq!(at(40), "Xid 79: fell off the bus, 2 more");
        assert_eq!(at(24), "Xid 79: fell off the bus");
        assert_eq!(fit_phrases(&[], 24), Some(Vec::new()));
    }
}
