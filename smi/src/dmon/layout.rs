//! The layout of heading lines and rows, either in columns or as CSV.

use super::{
    columns::Column,
    gpm::{self, Levels},
};
use crate::{
    Refusal, monitor,
    timestamp::{self, TimestampColumns},
};

/// The layout that `--format` selects.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Layout {
    csv: bool,
    no_units: bool,
    no_names: bool,
}

/// The numbers in a row. `None` stands for an unavailable number.
pub(super) struct RowCells {
    pub(super) columns: Vec<Option<i128>>,
    /// The indices of the MIG device, GPU instance, and compute instance.
    pub(super) instance: [Option<i128>; 3],
    pub(super) metrics: Vec<Option<i128>>,
}

/// The width of a GPU reading's column. The constant below is the width of a column with a MIG
/// device's ID.
const READING_WIDTH: usize = 6;
const INSTANCE_WIDTH: usize = 10;

/// The text of a cell, its width, and the gap after it.
struct Cell {
    text: String,
    width: usize,
    gap: &'static str,
}

impl Cell {
    fn new(text: impl Into<String>, width: usize) -> Self {
        Self {
            text: text.into(),
            width,
            gap: " ",
        }
    }
}

/// A function that changes the layout according to a word in `--format`.
type ApplyWord = fn(&mut Layout);

/// The words that `--format` accepts, and their effects.
const FORMAT_WORDS: [(&str, ApplyWord); 3] = [
    ("csv", |layout| layout.csv = true),
    ("nounit", |layout| layout.no_units = true),
    ("noheader", |layout| layout.no_names = true),
];

/// Returns the words that `--format` accepts.
pub(super) fn list_format_words() -> Vec<String> {
    FORMAT_WORDS
        .iter()
        .map(|(word, _)| (*word).to_owned())
        .collect()
}

impl Layout {
    /// Parses the comma-separated words given with `--format`.
    pub(super) fn parse(text: &str) -> Result<Self, Refusal> {
        let mut layout = Self::default();
        for typed in text.split(',').filter(|word| !word.is_empty()) {
            let (_, set) = FORMAT_WORDS
                .iter()
                .find(|(word, _)| *word == typed)
                .ok_or_else(|| {
                    monitor::make_value_refusal(&format!(
                        "{typed} is not a recognized format option\nError parsing format options\n"
                    ))
                })?;
            set(&mut layout);
        }
        Ok(layout)
    }

    /// Returns the two heading lines, which contain names and units.
    pub(super) fn format_heading(
        self,
        timestamp: TimestampColumns,
        columns: &[&'static Column],
        metrics: &[u32],
        levels: Levels,
    ) -> String {
        let ids = ["mig_id", "gi_id", "ci_id"];
        let ids = ids.iter().filter(|_| levels.mig);
        let metrics: Vec<_> = metrics
            .iter()
            .map(|metric| gpm::describe_column(*metric))
            .collect();
        let names = columns
            .iter()
            .map(|column| Cell::new(column.name, READING_WIDTH))
            .chain(ids.clone().map(|id| Cell::new(*id, INSTANCE_WIDTH)))
            .chain(
                metrics
                    .iter()
                    .map(|(name, _, width)| Cell::new(name, *width)),
            );
        let units = columns
            .iter()
            .map(|column| Cell::new(column.unit, READING_WIDTH))
            .chain(ids.map(|_| Cell::new("Idx", INSTANCE_WIDTH)))
            .chain(
                metrics
                    .iter()
                    .map(|(_, unit, width)| Cell::new(*unit, *width)),
            );
        let line = |front: &[&str], cells: Vec<Cell>| self.format_line('#', front, &cells) + "\n";
        let mut heading = String::new();
        if !self.no_names {
            heading += &line(&timestamp.names(), names.collect());
        }
        if !self.no_units {
            heading += &line(&timestamp.units(), units.collect());
        }
        heading
    }

    pub(super) fn format_row(
        self,
        timestamp: &[String],
        cells: &RowCells,
        metrics: &[u32],
        levels: Levels,
    ) -> String {
        let word = |number: &Option<i128>| monitor::format_cell(*number);
        let own = cells
            .columns
            .iter()
            .map(|number| Cell::new(word(number), READING_WIDTH));
        let ids = cells
            .instance
            .iter()
            .filter(|_| levels.mig)
            .map(|number| Cell::new(word(number), INSTANCE_WIDTH));
        let metrics = cells.metrics.iter().zip(metrics).map(|(number, metric)| {
            let cell = Cell::new(word(number), gpm::describe_column(*metric).2);
            if number.is_some() && gpm::counts_elapsed_cycles(*metric) {
                Cell { gap: "", ..cell }
            } else {
                cell
            }
        });
        self.format_line(
            ' ',
            timestamp,
            &own.chain(ids).chain(metrics).collect::<Vec<_>>(),
        )
    }

    /// Returns a line that consists of the first character, the leading words, and the cells.
    fn format_line<T: AsRef<str>>(self, first: char, front: &[T], cells: &[Cell]) -> String {
        if self.csv {
            let words = front
                .iter()
                .map(AsRef::as_ref)
                .chain(cells.iter().map(|cell| cell.text.as_str()));
            return format!("{first}{}", words.collect::<Vec<_>>().join(", "));
        }
        let cells: Vec<String> = cells
            .iter()
            .map(|Cell { text, width, gap }| format!("{text:>width$}{gap}"))
            .collect();
        format!(
            "{first}{} {}",
            timestamp::format_columns(front),
            cells.concat()
        )
    }
}
