//! What is wrong with a TOML file, where, and what would be right: always one line.

use std::ops::Range;

use thiserror::Error;

/// A file that cannot be understood.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{origin}:{line}:{column}: {message}")]
pub struct TomlError {
    /// Where the text came from: a file's name.
    pub origin: String,
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    /// What is wrong, and what would be right.
    pub message: String,
}

impl TomlError {
    /// An error at this byte range of the text.
    pub fn at(span: &Range<usize>, text: &str, origin: &str, message: String) -> Self {
        let before = text.get(..span.start).unwrap_or(text);
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        Self {
            origin: origin.to_owned(),
            line: before.matches('\n').count() + 1,
            column: before[line_start..].chars().count() + 1,
            message,
        }
    }

    /// What the parser says, with its cure.
    pub fn parse(error: &toml::de::Error, text: &str, origin: &str) -> Self {
        Self::at(
            &error.span().unwrap_or(0..0),
            text,
            origin,
            reword(error.message()),
        )
    }
}

/// The parser's message with its cure, in one line.
fn reword(message: &str) -> String {
    let message = message
        .lines()
        .map(str::trim)
        .collect::<Vec<_>>()
        .join("; ");
    let quoted: Vec<&str> = message.split('`').skip(1).step_by(2).collect();
    match quoted.split_first() {
        Some((typed, valid)) if message.starts_with("unknown field") => {
            format!("unknown key `{typed}`; {}", suggest(typed, valid))
        }
        Some((typed, valid)) if message.starts_with("unknown variant") => {
            format!("unknown value `{typed}`; {}", suggest(typed, valid))
        }
        Some((missing, [])) if message.starts_with("missing field") => {
            format!("`{missing}` is missing; add a line `{missing} = ...` here")
        }
        _ => message,
    }
}

/// The nearest valid word, or all of them where none is near.
pub fn suggest(typed: &str, valid: &[&str]) -> String {
    let nearest = valid.iter().map(|word| (distance(typed, word), word)).min();
    match nearest {
        Some((edits, word)) if edits <= 2 + typed.len() / 8 && edits < word.len() => {
            format!("did you mean `{word}`?")
        }
        _ => format!("use one of {}", valid.join(", ")),
    }
}

/// How many letters must be added, left out or exchanged to make `b` of `a`, whatever their case.
fn distance(a: &str, b: &str) -> usize {
    let (a, b) = (a.to_ascii_lowercase(), b.to_ascii_lowercase());
    let mut row: Vec<usize> = (0..=b.chars().count()).collect();
    for (i, from) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, to) in b.chars().enumerate() {
            let exchanged = diagonal + usize::from(from != to);
            diagonal = row[j + 1];
            row[j + 1] = exchanged.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[row.len() - 1]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distance_counts_edits() {
        assert_eq!(distance("seed", "seed"), 0);
        assert_eq!(distance("sede", "seed"), 2);
        assert_eq!(distance("", "gpu"), 3);
        assert_eq!(distance("utilisation_percent", "utilization_percent"), 1);
    }

    #[test]
    fn a_near_word_is_suggested_and_a_far_one_gets_the_list() {
        assert_eq!(suggest("sed", &["seed", "gpus"]), "did you mean `seed`?");
        assert_eq!(suggest("color", &["seed", "gpus"]), "use one of seed, gpus");
    }

    #[test]
    fn columns_count_characters() {
        let error = TomlError::at(&(8..9), "a = 1\né x", "f.toml", "m".into());
        assert_eq!((error.line, error.column), (2, 2));
    }
}
