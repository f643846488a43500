//! Which columns the GPUs' lines have, and how wide each is.

use unicode_width::UnicodeWidthStr;

use super::row::{EXTRAS, Row};

/// Between two columns.
pub(super) const GAP: usize = 2;

const SHORTEST_NAME: usize = 8;
const SHORTEST: usize = 8;
/// Words up to this length, or a third of the line, get their place beside the numbers; longer ones get lines of their
/// own.
const WORDS: usize = 34;
/// Words that come and go move nothing on a line of this length, where they have this much room in any case.
const WIDE: usize = 100;
const COMMON_WORDS: usize = "held but idle 26 min".len();
/// What bar and curve get before more columns are shown, and at most.
const GOOD: usize = 20;
const LONGEST: usize = 40;

/// The widths that all lines share; a column of no width is left out.
#[derive(Debug, Clone, Default)]
pub(super) struct Fit {
    pub(super) index: usize,
    pub(super) name: usize,
    pub(super) busy: usize,
    pub(super) used: usize,
    pub(super) total: usize,
    pub(super) temperature: usize,
    pub(super) draw: usize,
    pub(super) limit: usize,
    pub(super) bar: usize,
    pub(super) spark: usize,
    pub(super) extras: [usize; EXTRAS],
    /// Whether memory has a line of its own.
    pub(super) two_lines: bool,
}

impl Fit {
    /// The widths for these rows in so many columns, with a curve or without.
    pub(super) fn new(rows: &[Row<'_>], has_past: bool, columns: usize) -> Self {
        let widest =
            |cell: for<'a> fn(&'a Row<'_>) -> &'a str| rows.iter().map(|row| cell(row).width()).max().unwrap_or(0);
        let (name, total, limit) = (widest(|row| &row.name), widest(|row| &row.total), widest(|row| &row.limit));
        let mut fit = Self {
            index: widest(|row| &row.index).max(2),
            name,
            // A number that grows does not move the others.
            busy: widest(|row| &row.busy).max("100 %".len()),
            used: widest(|row| &row.used).max(if total > 3 { total } else { total + 2 }),
            total,
            temperature: widest(|row| &row.temperature),
            draw: widest(|row| &row.draw).max(limit),
            limit,
            bar: SHORTEST,
            spark: if has_past { SHORTEST } else { 0 },
            ..Self::default()
        };
        // The head tells the name of GPUs that are all alike.
        if fit.line() > columns && rows.iter().all(|row| !row.is_part && row.name == rows[0].name) {
            fit.name = 0;
        }
        if fit.line() > columns {
            fit.name = name;
            fit.break_in_two(columns);
        } else {
            fit.share_out(rows, columns);
        }
        fit
    }

    /// The columns that words can have beside the numbers.
    pub(super) fn beside(&self, columns: usize) -> usize {
        columns.saturating_sub(self.line() + GAP)
    }

    /// Memory, as `78.2/140 GiB`.
    pub(super) fn memory(&self) -> usize {
        self.used + with_slash(self.total) + " GiB".len()
    }

    /// Power, as `692/700 W`; left out where it has no room.
    pub(super) fn power(&self) -> usize {
        if self.draw == 0 { 0 } else { self.draw + with_slash(self.limit) + " W".len() }
    }

    /// The columns of the line that the words are beside: the only one, or the second.
    fn line(&self) -> usize {
        let first = [self.name, self.busy, self.spark, self.temperature, self.power()];
        let second = [self.memory(), self.bar];
        let cells = |cells: &[usize]| cells.iter().filter(|cell| **cell > 0).map(|cell| cell + GAP).sum::<usize>();
        let start = self.index + 1;
        if self.two_lines {
            return start + cells(&second) - GAP;
        }
        start + cells(&first) + cells(&second) + cells(&self.extras) - GAP
    }

    fn first_of_two(&self) -> usize {
        let cells = [self.name, self.busy, self.spark, self.temperature, self.power()];
        self.index + 1 + cells.into_iter().filter(|cell| *cell > 0).map(|cell| cell + GAP).sum::<usize>() - GAP
    }

    /// Shares out what is left of a line.
    fn share_out(&mut self, rows: &[Row<'_>], columns: usize) {
        let words = rows.iter().map(words_width).filter(|width| (1..=WORDS.max(columns / 3)).contains(width)).max();
        let least = if self.spark > 0 && columns >= WIDE { COMMON_WORDS } else { 0 };
        let words = words.unwrap_or(0).max(least);
        let columns = columns - (words + GAP * usize::from(words > 0)).min(columns - self.line());
        self.grow(columns, GOOD);
        for extra in 0..EXTRAS {
            let wanted = rows.iter().map(|row| row.extras[extra].width()).max().unwrap_or(0);
            if wanted > 0 && self.line() + GAP + wanted <= columns {
                self.extras[extra] = wanted;
            }
        }
        self.grow(columns, LONGEST);
    }

    /// Lets curve and bar grow, evenly, up to `longest`.
    fn grow(&mut self, columns: usize, longest: usize) {
        while self.line() < columns && (self.bar < longest || (0 < self.spark && self.spark < longest)) {
            if self.spark > 0 && self.spark < self.bar.min(longest) || self.bar >= longest {
                self.spark += 1;
            } else {
                self.bar += 1;
            }
        }
    }

    /// Memory goes to a second line. Where the first is still too long, the curve goes, the name is cut, and then what
    /// tells least goes.
    fn break_in_two(&mut self, columns: usize) {
        self.two_lines = true;
        if self.first_of_two() > columns {
            self.spark = 0;
        }
        let excess = self.first_of_two().saturating_sub(columns);
        self.name = self.name.saturating_sub(excess).max(SHORTEST_NAME.min(self.name));
        let leave_out: [fn(&mut Self); 3] = [|fit| fit.temperature = 0, |fit| fit.draw = 0, |fit| fit.name = 0];
        for leave_out in leave_out {
            if self.first_of_two() > columns {
                leave_out(self);
            }
        }
        while self.spark > 0 && self.spark < LONGEST && self.first_of_two() < columns {
            self.spark += 1;
        }
        self.bar = 0;
        let room = columns.saturating_sub(self.line() + GAP);
        self.bar = if room < SHORTEST { 0 } else { room.min(LONGEST / 2) };
    }
}

fn with_slash(width: usize) -> usize {
    if width == 0 { 0 } else { width + 1 }
}

/// The columns of all that is to be said, in one line.
pub(super) fn words_width(row: &Row<'_>) -> usize {
    row.words.iter().map(|words| words.text.width()).sum::<usize>() + 2 * row.words.len().saturating_sub(1)
}
