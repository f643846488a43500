//! Which columns the GPUs' lines have, and how wide each is.

use unicode_width::UnicodeWidthStr;

use super::{
    measure::Measure,
    row::{EXTRAS, Row},
};
use crate::describe::Phrase;

pub(super) const GAP: usize = 2;

const SHORTEST_NAME: usize = 8;
/// A curve or a bar gets this much in any case, a bar without a curve less where words need the room.
const SHORTEST: usize = 8;
const SHORTEST_BAR: usize = 5;
/// Words up to this length, or a third of the line, get their place beside the numbers; longer ones get a line of their
/// own.
const WORDS: usize = 34;
/// From so many columns on, there is room for more words.
const WIDE: usize = 120;
/// Words that come and go often have this much room before a line is broken in two for longer ones.
const COMMON_WORDS: usize = "thermal slowdown".len();
/// What bar and curve get before more columns are shown, and at most.
const GOOD: usize = 20;
const LONGEST: usize = 40;

/// The widths that all lines share; a column of no width is left out.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Fit {
    /// Those of the numbers; 0 where one is left out.
    pub(super) cells: Measure,
    pub(super) name: usize,
    pub(super) bar: usize,
    pub(super) spark: usize,
    pub(super) two_lines: bool,
}

#[derive(Clone, Copy)]
pub(super) struct Wishes<'a> {
    pub(super) rows: &'a [Row],
    pub(super) measure: &'a Measure,
    pub(super) has_past: bool,
    /// Whether words that come and go may move nothing, so that their room is kept free.
    pub(super) is_steady: bool,
}

impl Fit {
    pub(super) fn new(wishes: Wishes<'_>, columns: usize) -> Self {
        let Wishes {
            rows,
            measure,
            has_past,
            ..
        } = wishes;
        let name = rows.iter().map(|row| row.name.width()).max().unwrap_or(0);
        let mut fit = Self {
            // More than the numbers that everybody looks for is shown where there is room.
            cells: Measure {
                extras: [0; EXTRAS],
                ..*measure
            },
            name,
            bar: SHORTEST,
            spark: if has_past { SHORTEST } else { 0 },
            ..Self::default()
        };
        let words = wishes.words(columns);
        // Words that are there just now may go below their line; those that may come need their place.
        let least = if wishes.is_steady {
            words.min(COMMON_WORDS)
        } else {
            0
        };
        let is_enough =
            |fit: &mut Self| fit.make_way(words, columns) || fit.make_way(least, columns);
        let mut is_in_one = is_enough(&mut fit);
        // The head tells the name of GPUs that are all alike.
        if !is_in_one
            && rows
                .iter()
                .all(|row| !row.is_part && row.name == rows[0].name)
        {
            fit.name = 0;
            is_in_one = is_enough(&mut fit);
        }
        if is_in_one {
            fit.share_out(measure, words, columns);
        } else {
            fit.name = name;
            fit.break_in_two(words, columns);
        }
        fit
    }

    /// Whether something that others have on their lines had to go.
    pub(super) fn is_cramped(&self, has_past: bool) -> bool {
        self.two_lines || self.bar < SHORTEST || has_past && self.spark == 0
    }

    /// The columns that words can have beside the numbers.
    pub(super) fn beside(&self, columns: usize) -> usize {
        columns.saturating_sub(self.line() + GAP)
    }

    /// Memory, as `78.2/140 GiB`.
    pub(super) fn memory(&self) -> usize {
        self.cells.used + with_slash(self.cells.total) + " GiB".len()
    }

    /// Power, as `692/700 W`; left out where it has no room.
    pub(super) fn power(&self) -> usize {
        if self.cells.draw == 0 {
            0
        } else {
            self.cells.draw + with_slash(self.cells.limit) + " W".len()
        }
    }

    /// The columns of the line that the words are beside: the only one, or the second.
    fn line(&self) -> usize {
        let first = [
            self.name,
            self.cells.busy,
            self.spark,
            self.cells.temperature,
            self.power(),
        ];
        let second = [self.memory(), self.bar];
        let cells = |cells: &[usize]| {
            cells
                .iter()
                .filter(|cell| **cell > 0)
                .map(|cell| cell + GAP)
                .sum::<usize>()
        };
        let start = self.cells.index + 1;
        if self.two_lines {
            return start + cells(&second) - GAP;
        }
        start + cells(&first) + cells(&second) + cells(&self.cells.extras) - GAP
    }

    fn first_of_two(&self) -> usize {
        let cells = [
            self.name,
            self.cells.busy,
            self.spark,
            self.cells.temperature,
            self.power(),
        ];
        self.cells.index
            + 1
            + cells
                .into_iter()
                .filter(|cell| *cell > 0)
                .map(|cell| cell + GAP)
                .sum::<usize>()
            - GAP
    }

    /// Whether one line holds the numbers and so many columns of words. Drawings make way for words, the curve first;
    /// where even that is not enough, they stay.
    fn make_way(&mut self, words: usize, columns: usize) -> bool {
        let wanted = if words > 0 { words + GAP } else { 0 };
        for (spark, bar) in [
            (SHORTEST, SHORTEST),
            (0, SHORTEST),
            (0, SHORTEST_BAR),
            (0, 0),
        ] {
            let tried = Self {
                spark: self.spark.min(spark),
                bar,
                ..*self
            };
            if tried.line() + wanted <= columns {
                *self = tried;
                return true;
            }
        }
        false
    }

    /// Shares out what is left of a line.
    fn share_out(&mut self, measure: &Measure, words: usize, columns: usize) {
        let columns = columns - (words + GAP * usize::from(words > 0)).min(columns - self.line());
        self.grow(columns, GOOD);
        for (extra, wanted) in measure.extras.into_iter().enumerate() {
            if wanted > 0 && self.line() + GAP + wanted <= columns {
                self.cells.extras[extra] = wanted;
            }
        }
        self.grow(columns, LONGEST);
    }

    /// Lets curve and bar grow, evenly, up to `longest`.
    fn grow(&mut self, columns: usize, longest: usize) {
        while self.line() < columns
            && ((0 < self.bar && self.bar < longest) || (0 < self.spark && self.spark < longest))
        {
            if self.spark > 0 && self.spark < self.bar.min(longest) || self.bar >= longest {
                self.spark += 1;
            } else {
                self.bar += 1;
            }
        }
    }

    /// Memory goes to a second line. Where the first is still too long, the curve goes, the name is cut, and then what
    /// tells least goes.
    fn break_in_two(&mut self, words: usize, columns: usize) {
        self.two_lines = true;
        if self.first_of_two() > columns {
            self.spark = 0;
        }
        let excess = self.first_of_two().saturating_sub(columns);
        self.name = self
            .name
            .saturating_sub(excess)
            .max(SHORTEST_NAME.min(self.name));
        let leave_out: [fn(&mut Self); 3] = [
            |fit| fit.cells.temperature = 0,
            |fit| fit.cells.draw = 0,
            |fit| fit.name = 0,
        ];
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
        let beside_words = room.saturating_sub(if words > 0 { words + GAP } else { 0 });
        let room = if beside_words >= SHORTEST_BAR {
            beside_words
        } else {
            room
        };
        self.bar = if room < SHORTEST_BAR {
            0
        } else {
            room.min(LONGEST / 2)
        };
    }
}

impl Wishes<'_> {
    /// The columns to keep free for words.
    fn words(&self, columns: usize) -> usize {
        let wide = if columns >= WIDE { columns / 3 } else { 0 };
        if self.is_steady {
            return Phrase::SHORT.max(wide);
        }
        let wanted = |row: &Row| {
            let fitting = [
                (long_width(row), wide),
                (words_width(row), WORDS.max(columns / 3)),
            ];
            fitting
                .into_iter()
                .find(|(width, most)| width <= most)
                .map(|(width, _)| width)
        };
        self.rows.iter().filter_map(wanted).max().unwrap_or(0)
    }
}

fn with_slash(width: usize) -> usize {
    if width == 0 { 0 } else { width + 1 }
}

/// The columns of all that is to be said, in one line and in few words.
pub(super) fn words_width(row: &Row) -> usize {
    text_widths(row, |phrase| &phrase.short)
}

pub(super) fn long_width(row: &Row) -> usize {
    text_widths(row, |phrase| &phrase.long)
}

fn text_widths(row: &Row, text: fn(&Phrase) -> &String) -> usize {
    row.words
        .iter()
        .map(|phrase| text(phrase).width())
        .sum::<usize>()
        + 2 * row.words.len().saturating_sub(1)
}
