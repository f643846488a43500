//! Differences between two outputs.

use std::collections::HashMap;

/// The format of an output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Layout {
    /// The format of `-q`: a title and a value in each line.
    Log,
    /// XML with one element in each line.
    Xml,
    /// The format of `--query-gpu`: a row for each GPU, with commas between the cells.
    Csv,
    /// A table with columns, which is compared by line.
    Table,
}

impl Layout {
    pub(super) fn of(line: &str) -> Self {
        match line {
            _ if line.contains("-x") => Self::Xml,
            _ if line.starts_with("-q") => Self::Log,
            _ if line.starts_with("--query-gpu") => Self::Csv,
            _ => Self::Table,
        }
    }

    /// Returns the pieces of a text that are compared: cells with their position, or lines.
    fn pieces(self, text: &str) -> Vec<String> {
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

    /// Returns the value in a piece; `None` if the layout has no separate values.
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

/// The difference between two outputs of one command.
pub(super) struct Difference {
    /// The pieces that are only in the first text, in their order.
    pub(super) gone: Vec<String>,
    /// The pieces that are only in the second text.
    pub(super) new: Vec<String>,
}

impl Difference {
    pub(super) fn between(layout: Layout, before: &str, after: &str) -> Self {
        if before == after {
            return Self {
                gone: Vec::new(),
                new: Vec::new(),
            };
        }
        let (before, after) = (layout.pieces(before), layout.pieces(after));
        // Most of the pieces are equal at the beginning and the end of both texts.
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
            gone: without(before, after),
            new: without(after, before),
        }
    }
}

/// Returns the pieces that are not in `others`, or that occur less often there.
fn without(pieces: &[String], others: &[String]) -> Vec<String> {
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
