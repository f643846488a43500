//! Comparison of two outputs.

use std::collections::HashMap;

/// The layout of an output, which determines how it is split for comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Layout {
    /// The format of `-q`, with one title and value per line.
    Log,
    /// XML with one element per line.
    Xml,
    /// The format of `--query-gpu`, with one row per GPU and commas between cells.
    Csv,
    /// A table with columns, which is compared line by line.
    Table,
}

impl Layout {
    pub(super) fn from_line(line: &str) -> Self {
        match line {
            _ if line.contains("-x") => Self::Xml,
            _ if line.starts_with("-q") => Self::Log,
            _ if line.starts_with("--query-gpu") => Self::Csv,
            _ => Self::Table,
        }
    }

    /// Splits text into the pieces to compare. The pieces are lines, except for CSV, where they are
    /// cells with their positions.
    fn split_pieces(self, text: &str) -> Vec<String> {
        if self != Self::Csv {
            return text.lines().map(str::to_owned).collect();
        }
        let row = |(row, line): (usize, &str)| {
            let cells = line
                .split(", ")
                .enumerate()
                .map(|(column, cell)| format!("{row}/{column} : {cell}"));
            cells.collect::<Vec<_>>()
        };
        text.lines().enumerate().flat_map(row).collect()
    }

    /// Returns the value in a piece, or `None` if the layout has no separate values.
    pub(super) fn value(self, piece: &str) -> Option<&str> {
        match self {
            Self::Log | Self::Csv => piece.split_once(" : ").map(|(_, value)| value),
            Self::Xml => piece
                .split_once('>')
                .and_then(|(_, rest)| rest.split_once("</"))
                .map(|(value, _)| value),
            Self::Table => None,
        }
    }
}

/// The difference between two outputs of the same command.
pub(super) struct Difference {
    /// The pieces that only the first output contains, in order.
    pub(super) gone: Vec<String>,
    /// The pieces that only the second output contains, in order.
    pub(super) new: Vec<String>,
}

impl Difference {
    pub(super) fn new(layout: Layout, before: &str, after: &str) -> Self {
        if before == after {
            return Self {
                gone: Vec::new(),
                new: Vec::new(),
            };
        }
        let (before, after) = (layout.split_pieces(before), layout.split_pieces(after));
        // The two outputs usually have many equal pieces at the beginning and at the end, so these
        // are skipped first.
        let same = |(one, other): &(&String, &String)| one == other;
        let start = before.iter().zip(&after).take_while(same).count();
        let (before, after) = (&before[start..], &after[start..]);
        let end = before
            .iter()
            .rev()
            .zip(after.iter().rev())
            .take_while(same)
            .count();
        let (before, after) = (&before[..before.len() - end], &after[..after.len() - end]);
        Self {
            gone: list_missing(before, after),
            new: list_missing(after, before),
        }
    }
}

/// Returns the pieces that `others` does not contain, or contains less often.
fn list_missing(pieces: &[String], others: &[String]) -> Vec<String> {
    let mut left: HashMap<&str, usize> = HashMap::new();
    for other in others {
        *left.entry(other).or_default() += 1;
    }
    let mut is_more = |piece: &&String| match left.get_mut(piece.as_str()) {
        Some(count) if *count > 0 => {
            *count -= 1;
            false
        }
        _ => true,
    };
    pieces
        .iter()
        .filter(|piece| is_more(piece))
        .cloned()
        .collect()
}
