//! Errors in TOML files, formatted in one line with position and remedy.

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
    /// Creates an error for a byte range of `text`.
    pub fn new_at_span(span: &Range<usize>, text: &str, origin: &str, message: String) -> Self {
        let before = text.get(..span.start).unwrap_or(text);
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        Self {
            origin: origin.to_owned(),
            line: before.matches('\n').count() + 1,
            column: before[line_start..].chars().count() + 1,
            message,
        }
    }

    /// Converts a parser error, and adds a remedy.
    pub fn from_parser_error(error: &toml::de::Error, text: &str, origin: &str) -> Self {
        Self::new_at_span(
            &error.span().unwrap_or(0..0),
            text,
            origin,
            reword_message(error.message()),
        )
    }
}

/// Converts a parser message to one line with a remedy.
fn reword_message(message: &str) -> String {
    let message = message
        .lines()
        .map(str::trim)
        .collect::<Vec<_>>()
        .join("; ");
    let quoted: Vec<&str> = message.split('`').skip(1).step_by(2).collect();
    match quoted.split_first() {
        Some((typed, valid)) if message.starts_with("unknown field") => {
            format!("unknown key `{typed}`; {}", suggest_word(typed, valid))
        }
        Some((typed, valid)) if message.starts_with("unknown variant") => {
            format!("unknown value `{typed}`; {}", suggest_word(typed, valid))
        }
        Some((missing, [])) if message.starts_with("missing field") => {
            format!("`{missing}` is missing; add a line `{missing} = ...` here")
        }
        _ => message,
    }
}

/// Suggests the most similar valid word, or lists all valid words if none is similar.
pub fn suggest_word(typed: &str, valid: &[&str]) -> String {
    let nearest = valid
        .iter()
        .map(|word| (edit_distance(typed, word), word))
        .min();
    match nearest {
        Some((edits, word)) if edits <= 2 + typed.len() / 8 && edits < word.len() => {
            format!("did you mean `{word}`?")
        }
        _ => format!("use one of {}", valid.join(", ")),
    }
}

/// Returns the number of letters to insert, delete or replace to turn `a` into `b`, ignoring case.
fn edit_distance(a: &str, b: &str) -> usize {
    strsim::levenshtein(&a.to_ascii_lowercase(), &b.to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edit_distance_counts_edits() {
        assert_eq!(edit_distance("seed", "seed"), 0);
        assert_eq!(edit_distance("sede", "seed"), 2);
        assert_eq!(edit_distance("", "gpu"), 3);
        assert_eq!(
            edit_distance("utilisation_percent", "utilization_percent"),
            1
        );
    }

    #[test]
    fn nearest_word_or_all_words_are_suggested() {
        assert_eq!(
            suggest_word("sed", &["seed", "gpus"]),
            "did you mean `seed`?"
        );
        assert_eq!(
            suggest_word("color", &["seed", "gpus"]),
            "use one of seed, gpus"
        );
    }

    #[test]
    fn toml_error_column_counts_characters() {
        let error = TomlError::new_at_span(&(8..9), "a = 1\né x", "f.toml", "m".into());
        assert_eq!((error.line, error.column), (2, 2));
    }
}
