//! Errors in TOML files, with position and remedy, in one line.

use std::ops::Range;

use thiserror::Error;

/// An error in a TOML file.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{origin}:{line}:{column}: {message}")]
pub struct TomlError {
    /// The name of the file.
    pub origin: String,
    /// The line number, starting at 1.
    pub line: usize,
    /// The column in characters, starting at 1.
    pub column: usize,
    /// The problem and its remedy.
    pub message: String,
}

impl TomlError {
    /// Returns an error for this byte range of the text.
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

    /// Converts an error of the parser, and adds a remedy.
    pub fn parse(error: &toml::de::Error, text: &str, origin: &str) -> Self {
        Self::at(
            &error.span().unwrap_or(0..0),
            text,
            origin,
            reword(error.message()),
        )
    }
}

/// Converts a message of the parser to one line with a remedy.
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

/// Suggests the nearest valid word, or lists all if none is near.
pub fn suggest(typed: &str, valid: &[&str]) -> String {
    let nearest = valid.iter().map(|word| (distance(typed, word), word)).min();
    match nearest {
        Some((edits, word)) if edits <= 2 + typed.len() / 8 && edits < word.len() => {
            format!("did you mean `{word}`?")
        }
        _ => format!("use one of {}", valid.join(", ")),
    }
}

/// Returns the number of letters to insert, delete or replace to turn `a` into `b`, ignoring case.
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
