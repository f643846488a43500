//! The filter for the list of processes.

use super::{columns::Column, rows::Row};
use crate::suggest::find_nearest;

/// A filter that consists of words. A row must match every word. A word with a column name, such as
/// `user:ana`, must occur in this column.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(in crate::top) struct Filter {
    pub(in crate::top) text: String,
    /// The mistake in the filter, if any. The word with the mistake is ignored.
    pub(in crate::top) mistake: Option<String>,
    terms: Vec<Term>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Term {
    column: Option<Column>,
    /// The word to search for, in lowercase.
    word: String,
}

/// The columns that are searched for a word without a column name.
const SEARCHED_COLUMNS: [Column; 3] = [Column::What, Column::User, Column::Pid];

impl Filter {
    pub(in crate::top) fn new(text: &str) -> Self {
        let mut filter = Self {
            text: text.to_owned(),
            ..Self::default()
        };
        for word in text.split_whitespace() {
            match Term::new(word) {
                Ok(term) => filter.terms.push(term),
                Err(mistake) => filter.mistake = filter.mistake.or(Some(mistake)),
            }
        }
        filter
    }

    pub(in crate::top) fn is_empty(&self) -> bool {
        self.terms.is_empty()
    }

    /// Returns `true` if all words match the row. GPUs and PIDs must match in full: `gpu:1` matches
    /// GPU 1 and its MIG devices, but not GPU 10.
    pub(in crate::top) fn is_match(&self, row: &Row<'_>) -> bool {
        self.terms.iter().all(|term| match term.column {
            Some(Column::Gpu) => {
                row.gpu.to_string() == term.word
                    || row.format_searched_text(Column::Gpu) == term.word
            }
            Some(Column::Pid) => row.format_searched_text(Column::Pid) == term.word,
            Some(column) => row.format_searched_text(column).contains(&term.word),
            None => SEARCHED_COLUMNS
                .iter()
                .any(|column| row.format_searched_text(*column).contains(&term.word)),
        })
    }
}

impl Term {
    fn new(text: &str) -> Result<Self, String> {
        let is_name = |name: &str| {
            !name.is_empty()
                && name
                    .chars()
                    .all(|letter| letter.is_alphabetic() || letter == '-')
        };
        let Some((name, word)) = text.split_once(':').filter(|(name, _)| is_name(name)) else {
            return Ok(Self {
                column: None,
                word: text.to_lowercase(),
            });
        };
        let column = Column::from_id(&name.to_lowercase()).ok_or_else(|| {
            let known = Column::ALL.map(Column::id);
            match find_nearest(name, known) {
                Some(meant) => format!("unknown column '{name}': did you mean '{meant}'?"),
                None => format!("unknown column '{name}': use {}", known.join(", ")),
            }
        })?;
        Ok(Self {
            column: Some(column),
            word: word.to_lowercase(),
        })
    }
}
