//! What of a text is another than before.

use std::collections::HashMap;

/// How a form is laid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Layout {
    /// `-q`: a title and a value in each line.
    Log,
    /// An element in each line.
    Xml,
    /// `--query-gpu`: a row for each GPU, with commas.
    Csv,
    /// Columns.
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

    /// The pieces of a text that are compared: cells with their place, or lines.
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

    /// The value in a piece; `None` where it has none of its own.
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

/// The difference between two texts of one form.
pub(super) struct Difference {
    /// The pieces that are gone, in their order.
    pub(super) gone: Vec<String>,
    /// Those that have come.
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
        // Most of them stand where they stood.
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

/// The pieces that the others do not have, or have fewer times.
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
