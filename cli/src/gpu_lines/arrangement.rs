//! Arrangement of a GPU's lines: which cells are shown, and their order and widths.

use unicode_width::UnicodeWidthStr;

use super::cells::{CellsKind, FurtherReading, GpuCells};
use crate::{
    describe::{self, Phrase},
    terminal::{
        columns::{Part, choose_parts},
        text::UNLIMITED_LAYOUT,
        units::ABSENT,
    },
};

pub(super) const GAP: usize = 2;

/// The minimum width to which a longer name is cut if space is limited.
const MIN_NAME_WIDTH: usize = 8;
/// The minimum width at which a sparkline is legible.
const MIN_SPARKLINE_WIDTH: usize = 8;
const MIN_BAR_WIDTH: usize = 5;
/// The width that a sparkline or bar should have. A line shows further readings only if its
/// sparkline and its bar each keep at least this width.
const GOOD_GRAPH_WIDTH: usize = 20;
/// The maximum width of a sparkline or bar.
const MAX_GRAPH_WIDTH: usize = 40;
/// The maximum width of phrases to the right of the numbers, unless a third of the line is wider.
/// Longer phrases get a separate line.
const MAX_WORDS_WIDTH: usize = 34;
/// The minimum width of a line with room for the long forms of phrases.
const WIDE_LINE_WIDTH: usize = 120;
/// The maximum width reserved for phrases that may appear later, in a line that can be divided into
/// two lines. In other lines, more width may be reserved.
const COMMON_WORDS_WIDTH: usize = "thermal slowdown".len();

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Slot {
    Name,
    Utilization,
    Past,
    Memory,
    Bar,
    Temperature,
    Power,
    /// A further reading, given by its position in [`FurtherReading::ALL`].
    Further(usize),
}

/// The width of the widest cell in each column.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct CellWidths {
    pub(super) index: usize,
    name: usize,
    utilization: usize,
    pub(super) used: usize,
    total: usize,
    temperature: usize,
    pub(super) draw: usize,
    limit: usize,
    further: [usize; FurtherReading::ALL.len()],
}

impl CellWidths {
    /// Returns the widths of the widest cells in `rows`, without the rows of totals. Columns of
    /// numbers get additional width, so that other cells do not move when a number becomes longer.
    pub(crate) fn new(rows: &[GpuCells]) -> Self {
        let rows = || rows.iter().filter(|row| row.kind != CellsKind::Total);
        let widest =
            |cell: fn(&GpuCells) -> &str| rows().map(|row| cell(row).width()).max().unwrap_or(0);
        let (total, limit) = (widest(|row| &row.total), widest(|row| &row.limit));
        let utilization = widest(|row| &row.utilization);
        let common = if utilization > describe::BUSY_WIDTH {
            describe::BUSY_WIDTH_WITH_SM
        } else {
            describe::BUSY_WIDTH
        };
        let mut further = [0; FurtherReading::ALL.len()];
        for (place, width) in further.iter_mut().enumerate() {
            let values = rows().map(|row| row.further[place].as_str());
            let known = values.filter(|value| !matches!(*value, "" | ABSENT));
            let widest = known.map(UnicodeWidthStr::width).max();
            let common = FurtherReading::ALL[place].typical_width();
            *width = widest.map_or(0, |widest| widest.max(common));
        }
        Self {
            index: widest(|row| &row.index).max(2),
            name: widest(|row| &row.name),
            utilization: utilization.max(common),
            used: widest(|row| &row.used).max(if total > 3 { total } else { total + 2 }),
            total,
            temperature: widest(|row| &row.temperature),
            draw: widest(|row| &row.draw).max(limit),
            limit,
            further,
        }
    }

    /// Returns the larger of the current and the previous width for each column.
    pub(crate) fn merge_max(self, before: &Self) -> Self {
        let mut further = self.further;
        for (further, before) in further.iter_mut().zip(before.further) {
            *further = before.max(*further);
        }
        Self {
            index: self.index.max(before.index),
            name: self.name,
            utilization: self.utilization.max(before.utilization),
            used: self.used.max(before.used),
            total: self.total.max(before.total),
            temperature: self.temperature.max(before.temperature),
            draw: self.draw.max(before.draw),
            limit: self.limit.max(before.limit),
            further,
        }
    }

    /// Returns the column at which the cells start, after the index.
    pub(crate) fn first_column(&self) -> usize {
        self.index + 1
    }

    /// Returns the width of the memory cell, such as `78.2/140 GiB`.
    fn memory_width(&self) -> usize {
        self.used + width_with_slash(self.total) + " GiB".len()
    }

    /// Returns the width of the power cell, such as `692/700 W`.
    fn power_width(&self) -> usize {
        match self.draw {
            0 => 0,
            draw => draw + width_with_slash(self.limit) + " W".len(),
        }
    }
}

fn width_with_slash(width: usize) -> usize {
    if width == 0 { 0 } else { width + 1 }
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct LineOptions {
    pub(crate) columns: usize,
    /// Whether the utilization of the last minute is available.
    pub(crate) has_past: bool,
    /// Whether room is reserved for phrases, so that the other cells do not move when phrases
    /// appear and disappear.
    pub(crate) is_steady: bool,
    /// Whether memory may be moved to a second line.
    pub(crate) may_break: bool,
}

impl LineOptions {
    fn min_sparkline_width(self) -> usize {
        if self.has_past {
            MIN_SPARKLINE_WIDTH
        } else {
            0
        }
    }
}

/// Returns the number of columns that remain next to phrases of the given width.
fn room_next_to_words(room: usize, words: usize) -> usize {
    room.saturating_sub(if words > 0 { words + GAP } else { 0 })
}

/// The positions of the cells, which are the same for all GPUs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Arrangement {
    pub(super) columns: usize,
    /// Whether a GPU may have several lines.
    pub(super) may_break: bool,
    /// The visible cells of each line, with their widths.
    pub(super) lines: Vec<Vec<(Slot, usize)>>,
}

/// A cell that is shown if there is room for it.
#[derive(Debug, Clone, Copy)]
struct Candidate {
    slot: Slot,
    /// The minimum width of the cell. A cell of fixed width always has this width.
    width: usize,
    most: usize,
    rank: u8,
    rest: usize,
}

impl Candidate {
    /// Returns a cell of fixed width. Cells with the highest rank are omitted first. Cells of rank
    /// 0 are never omitted.
    fn new(slot: Slot, width: usize, rank: u8) -> Self {
        Self {
            slot,
            width,
            most: width,
            rank,
            rest: 0,
        }
    }

    /// Sets the maximum width to which the cell may grow.
    fn with_max_width(self, most: usize) -> Self {
        Self { most, ..self }
    }

    /// Sets the number of columns, `rest`, that must remain for the other cells to grow. If fewer
    /// columns would remain, this cell is omitted.
    fn with_min_remaining_columns(self, rest: usize) -> Self {
        Self { rest, ..self }
    }
}

impl Arrangement {
    pub(crate) fn new(rows: &[GpuCells], widths: &CellWidths, options: LineOptions) -> Self {
        let arranged = Self::arrange_cells(rows, widths, options);
        if !arranged.is_cramped(options) {
            return arranged;
        }
        // A long name counts only up to a maximum width. Otherwise, one long name could make all
        // GPUs need two lines, or take space from their sparklines and bars.
        let short = |row: &GpuCells| match row.kind {
            CellsKind::Part => row.name.width(),
            _ => describe::fit_name(&row.name, describe::MAX_NAME_WIDTH, UNLIMITED_LAYOUT).width(),
        };
        let name = rows.iter().map(short).max().unwrap_or(0);
        Self::arrange_cells(rows, &CellWidths { name, ..*widths }, options)
    }

    fn arrange_cells(rows: &[GpuCells], widths: &CellWidths, options: LineOptions) -> Self {
        let room = options.columns.saturating_sub(widths.index + 1);
        let words = reserved_phrase_width(rows, options);
        // Phrases that are already present can be moved below their line, so they need no room
        // here. Room is reserved only for phrases that may appear later.
        let least = match options {
            LineOptions {
                is_steady: false, ..
            } => 0,
            LineOptions {
                may_break: true, ..
            } => words.min(COMMON_WORDS_WIDTH),
            _ => words,
        };
        let mut gpus = rows.iter().filter(|row| row.kind != CellsKind::Total);
        let first = gpus.next();
        // If all GPUs have the same name, the title above the lines shows it, so the lines may omit
        // it.
        let is_named_above = first.is_some_and(|first| {
            let is_like = |row: &GpuCells| row.kind == CellsKind::Gpu && row.name == first.name;
            gpus.all(is_like)
        });
        let names: &[bool] = if is_named_above {
            &[true, false]
        } else {
            &[true]
        };
        let one_line = names.iter().find_map(|is_named| {
            let cells = widths.list_one_line_candidates(*is_named, options, widths.name);
            let mut rooms = [words, least]
                .map(|words| room_next_to_words(room, words))
                .into_iter();
            rooms.find_map(|room| choose_cells(&cells, room))
        });
        let lines = match one_line {
            Some(line) => vec![line],
            None if options.may_break => widths.arrange_in_two_lines(room, words, options),
            None => {
                let cut = widths.list_one_line_candidates(!is_named_above, options, MIN_NAME_WIDTH);
                vec![choose_required_cells(&cut, room_next_to_words(room, words))]
            }
        };
        Self {
            columns: options.columns,
            may_break: options.may_break,
            lines,
        }
    }

    /// Returns `true` if the cells need two lines, or if a sparkline or bar had to be omitted.
    fn is_cramped(&self, options: LineOptions) -> bool {
        let has = |wanted: Slot| {
            let mut cells = self.lines.iter().flatten();
            cells.any(|(slot, _)| *slot == wanted)
        };
        self.lines.len() > 1 || !has(Slot::Bar) || options.has_past && !has(Slot::Past)
    }

    /// Returns the width of the sparkline.
    pub(crate) fn sparkline_width(&self) -> usize {
        self.slot_width(Slot::Past)
    }

    pub(crate) fn name_width(&self) -> usize {
        self.slot_width(Slot::Name)
    }

    fn slot_width(&self, wanted: Slot) -> usize {
        let mut cells = self.lines.iter().flatten();
        let found = cells.find(|(slot, _)| *slot == wanted);
        found.map_or(0, |(_, width)| *width)
    }
}

impl CellWidths {
    fn list_one_line_candidates(
        &self,
        is_named: bool,
        options: LineOptions,
        name: usize,
    ) -> Vec<Candidate> {
        let name = name.min(self.name);
        // On a line that must not be divided, the power may be omitted, because the charts also
        // show it.
        let power = if options.may_break { 0 } else { 2 };
        let past = options.min_sparkline_width();
        let drawn = [past, MIN_BAR_WIDTH].into_iter().filter(|width| *width > 0);
        let until_good: usize = drawn.map(|width| GOOD_GRAPH_WIDTH - width).sum();
        let further = self.further.iter().enumerate().map(|(place, width)| {
            let labeled = width
                + if *width > 0 {
                    FurtherReading::ALL[place].label().len()
                } else {
                    0
                };
            Candidate::new(Slot::Further(place), labeled, 5 + place as u8)
                .with_min_remaining_columns(until_good)
        });
        let candidates = [
            Candidate::new(Slot::Name, if is_named { name } else { 0 }, 0)
                .with_max_width(self.name),
            Candidate::new(Slot::Utilization, self.utilization, 0),
            Candidate::new(Slot::Past, past, 4).with_max_width(MAX_GRAPH_WIDTH),
            Candidate::new(Slot::Memory, self.memory_width(), 0),
            Candidate::new(Slot::Bar, MIN_BAR_WIDTH, 3).with_max_width(MAX_GRAPH_WIDTH),
            Candidate::new(Slot::Temperature, self.temperature, 0),
            Candidate::new(Slot::Power, self.power_width(), power),
        ];
        candidates.into_iter().chain(further).collect()
    }

    /// Arranges the cells in two lines, with memory on the second line.
    fn arrange_in_two_lines(
        &self,
        room: usize,
        words: usize,
        options: LineOptions,
    ) -> Vec<Vec<(Slot, usize)>> {
        let name = self.name.min(MIN_NAME_WIDTH);
        let past = options.min_sparkline_width();
        let first = [
            Candidate::new(Slot::Name, name, 1).with_max_width(self.name),
            Candidate::new(Slot::Utilization, self.utilization, 0),
            Candidate::new(Slot::Past, past, 4)
                .with_max_width(MAX_GRAPH_WIDTH)
                .with_min_remaining_columns(self.name - name),
            Candidate::new(Slot::Temperature, self.temperature, 3),
            Candidate::new(Slot::Power, self.power_width(), 2),
        ];
        let bar = |most| {
            [
                Candidate::new(Slot::Memory, self.memory_width(), 0),
                Candidate::new(Slot::Bar, MIN_BAR_WIDTH, 1).with_max_width(most),
            ]
        };
        let second = [room_next_to_words(room, words), room]
            .into_iter()
            .filter_map(|room| choose_cells(&bar(MAX_GRAPH_WIDTH / 2), room))
            .find(|line| line.len() > 1);
        vec![
            choose_required_cells(&first, room),
            second.unwrap_or_else(|| choose_required_cells(&bar(0), room)),
        ]
    }
}

/// Returns the cells that fit into `columns` columns, as wide as possible, or `None` if not even
/// the required cells fit.
fn choose_cells(candidates: &[Candidate], columns: usize) -> Option<Vec<(Slot, usize)>> {
    let cells = choose_required_cells(candidates, columns);
    let taken: usize = cells.iter().map(|(_, width)| width + GAP).sum();
    (taken <= columns + GAP).then_some(cells)
}

fn choose_required_cells(candidates: &[Candidate], columns: usize) -> Vec<(Slot, usize)> {
    let mut shown: Vec<_> = candidates
        .iter()
        .filter(|cell| cell.width > 0)
        .copied()
        .collect();
    let parts = shown.iter().map(|cell| Part {
        width: cell.width,
        rank: cell.rank,
        rest: cell.rest,
    });
    let mut is_shown = choose_parts(&parts.collect::<Vec<_>>(), GAP, columns).into_iter();
    shown.retain(|_| is_shown.next() == Some(true));
    let taken: usize = shown.iter().map(|cell| cell.width + GAP).sum();
    for _ in taken..columns + GAP {
        let growing = shown.iter_mut().filter(|cell| cell.width < cell.most);
        // Names grow first; then sparklines and bars grow evenly.
        let next = growing.min_by_key(|cell| (cell.slot != Slot::Name, cell.width));
        let Some(cell) = next else { break };
        cell.width += 1;
    }
    let cells = shown.iter().map(|cell| (cell.slot, cell.width));
    cells.collect()
}

/// Returns the width to reserve for phrases to the right of the numbers.
fn reserved_phrase_width(rows: &[GpuCells], options: LineOptions) -> usize {
    if options.is_steady {
        return Phrase::MAX_SHORT_WIDTH;
    }
    let third = options.columns / 3;
    let wide = if options.columns >= WIDE_LINE_WIDTH {
        third
    } else {
        0
    };
    let wanted = |row: &GpuCells| {
        let [long, short] = [row.long_words_width(), row.short_words_width()];
        [(long, wide), (short, MAX_WORDS_WIDTH.max(third))]
            .into_iter()
            .find(|(width, most)| width <= most)
            .map(|(width, _)| width)
    };
    rows.iter().filter_map(wanted).max().unwrap_or(0)
}

impl GpuCells {
    /// Returns the width of all phrases in their long form.
    pub(super) fn long_words_width(&self) -> usize {
        joined_width(self.words.iter().map(|phrase| phrase.long.as_str()))
    }

    fn short_words_width(&self) -> usize {
        joined_width(self.words.iter().map(|phrase| phrase.short.as_str()))
    }
}

/// Returns the width of the strings when joined by commas.
pub(super) fn joined_width<'a>(texts: impl Iterator<Item = &'a str>) -> usize {
    texts
        .map(|text| text.width() + 2)
        .sum::<usize>()
        .saturating_sub(2)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn example_widths() -> CellWidths {
        CellWidths {
            index: 2,
            name: 30,
            utilization: 5,
            used: 5,
            total: 3,
            temperature: 5,
            draw: 3,
            limit: 3,
            further: FurtherReading::ALL.map(FurtherReading::typical_width),
        }
    }

    fn arrange_at(columns: usize, name: &str) -> Arrangement {
        let options = LineOptions {
            columns,
            has_past: true,
            is_steady: true,
            may_break: false,
        };
        let gpu = || GpuCells {
            name: name.to_owned(),
            ..GpuCells::default()
        };
        let widths = CellWidths {
            name: name.len(),
            ..example_widths()
        };
        Arrangement::new(&[gpu(), gpu()], &widths, options)
    }

    fn count_columns(arrangement: &Arrangement) -> usize {
        let cells = arrangement.lines[0].iter();
        3 + cells.map(|(_, width)| width + GAP).sum::<usize>() - GAP
    }

    #[test]
    fn gpu_line_leaves_room_for_phrase() {
        for columns in 40..400 {
            let arrangement = arrange_at(columns, "RTX PRO 6000 Blackwell Server");
            let taken = count_columns(&arrangement);
            assert!(columns < 60 || taken <= columns, "{taken} of {columns}");
            assert!(
                columns < 80 || columns - taken >= Phrase::MAX_SHORT_WIDTH,
                "{taken} of {columns}"
            );
        }
    }

    #[test]
    fn wider_gpu_line_adds_further_readings_in_order() {
        let shown = |columns| {
            let cells = arrange_at(columns, "H200").lines.remove(0).into_iter();
            let further = cells.filter_map(|(slot, _)| match slot {
                Slot::Further(place) => Some(place),
                _ => None,
            });
            further.collect::<Vec<_>>()
        };
        assert_eq!(shown(80).len(), 0);
        for columns in 80..400 {
            let places = shown(columns);
            assert_eq!(places, (0..places.len()).collect::<Vec<_>>(), "{columns}");
        }
        assert_eq!(shown(400).len(), FurtherReading::ALL.len());
    }

    #[test]
    fn narrow_gpu_line_drops_sparkline_before_power_reading() {
        let has = |columns, wanted| {
            let line = &arrange_at(columns, "H200").lines[0];
            line.iter().any(|(slot, _)| *slot == wanted)
        };
        let at_80 = [Slot::Name, Slot::Past, Slot::Bar, Slot::Power].map(|slot| has(80, slot));
        assert_eq!(at_80, [true, false, true, true]);
        let at_60 = [Slot::Name, Slot::Bar, Slot::Power].map(|slot| has(60, slot));
        assert_eq!(at_60, [false, false, false]);
    }
}
