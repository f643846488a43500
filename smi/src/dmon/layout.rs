//! The layout of headings and rows, either in columns or as CSV.

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

/// The numbers of a row; `None` for an unavailable number.
pub(super) struct Cells {
    pub(super) columns: Vec<Option<i128>>,
    /// The MIG device, the GPU instance and the compute instance.
    pub(super) instance: [Option<i128>; 3],
    pub(super) metrics: Vec<Option<i128>>,
}

/// The column widths of GPU readings and of a MIG device's IDs.
const OWN: usize = 6;
const INSTANCE: usize = 10;

/// A text with its width and the gap after it.
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

/// A function that applies a word of `--format`.
type Set = fn(&mut Layout);

/// The words of `--format` with their effects.
const WORDS: [(&str, Set); 3] = [
    ("csv", |layout| layout.csv = true),
    ("nounit", |layout| layout.no_units = true),
    ("noheader", |layout| layout.no_names = true),
];

/// Returns the words of `--format`.
pub(super) fn words() -> Vec<String> {
    WORDS.iter().map(|(word, _)| (*word).to_owned()).collect()
}

impl Layout {
    /// Parses a comma-separated list of words.
    pub(super) fn parse(text: &str) -> Result<Self, Refusal> {
        let mut layout = Self::default();
        for typed in text.split(',').filter(|word| !word.is_empty()) {
            let (_, set) = WORDS
                .iter()
                .find(|(word, _)| *word == typed)
                .ok_or_else(|| {
                    monitor::fail(&format!(
                        "{typed} is not a recognized format option\nError parsing format options\n"
                    ))
                })?;
            set(&mut layout);
        }
        Ok(layout)
    }

    /// Returns the heading lines: names, followed by units.
    pub(super) fn heading(
        self,
        timestamp: TimestampColumns,
        columns: &[&'static Column],
        metrics: &[u32],
        levels: Levels,
    ) -> String {
        let ids = ["mig_id", "gi_id", "ci_id"];
        let ids = ids.iter().filter(|_| levels.mig);
        let metrics: Vec<_> = metrics.iter().map(|metric| gpm::column(*metric)).collect();
        let names = columns
            .iter()
            .map(|column| Cell::new(column.name, OWN))
            .chain(ids.clone().map(|id| Cell::new(*id, INSTANCE)))
            .chain(
                metrics
                    .iter()
                    .map(|(name, _, width)| Cell::new(name, *width)),
            );
        let units = columns
            .iter()
            .map(|column| Cell::new(column.unit, OWN))
            .chain(ids.map(|_| Cell::new("Idx", INSTANCE)))
            .chain(
                metrics
                    .iter()
                    .map(|(_, unit, width)| Cell::new(*unit, *width)),
            );
        let line = |front: &[&str], cells: Vec<Cell>| self.line('#', front, &cells) + "\n";
        let mut heading = String::new();
        if !self.no_names {
            heading += &line(&timestamp.names(), names.collect());
        }
        if !self.no_units {
            heading += &line(&timestamp.units(), units.collect());
        }
        heading
    }

    pub(super) fn row(
        self,
        timestamp: &[String],
        cells: &Cells,
        metrics: &[u32],
        levels: Levels,
    ) -> String {
        let word = |number: &Option<i128>| monitor::format_cell(*number);
        let own = cells
            .columns
            .iter()
            .map(|number| Cell::new(word(number), OWN));
        let ids = cells
            .instance
            .iter()
            .filter(|_| levels.mig)
            .map(|number| Cell::new(word(number), INSTANCE));
        let metrics = cells.metrics.iter().zip(metrics).map(|(number, metric)| {
            let cell = Cell::new(word(number), gpm::column(*metric).2);
            if number.is_some() && gpm::is_elapsed(*metric) {
                Cell { gap: "", ..cell }
            } else {
                cell
            }
        });
        self.line(
            ' ',
            timestamp,
            &own.chain(ids).chain(metrics).collect::<Vec<_>>(),
        )
    }

    /// Returns a line: the first character, the leading words, and the cells.
    fn line<T: AsRef<str>>(self, first: char, front: &[T], cells: &[Cell]) -> String {
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
        format!("{first}{} {}", timestamp::columns(front), cells.concat())
    }
}
