//! The filter of processes by words.

use super::{columns::Column, rows::Row};
use crate::suggest::nearest;

/// A filter of words that must all occur. A word with a column, such as `user:ana`, must occur in
/// that column.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(in crate::top) struct Filter {
    pub(in crate::top) text: String,
    /// The mistake in the filter, if any. The mistaken word is ignored.
    pub(in crate::top) mistake: Option<String>,
    terms: Vec<Term>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Term {
    column: Option<Column>,
    /// The word in lowercase.
    word: String,
}

/// The columns searched for a word without a column.
const SEARCHED: [Column; 3] = [Column::What, Column::User, Column::Pid];

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

    /// Returns `true` if all words occur in a row. A number must match in full: `gpu:1` is GPU 1
    /// with its MIG devices, but not GPU 10.
    pub(in crate::top) fn admits(&self, row: &Row<'_>) -> bool {
        self.terms.iter().all(|term| match term.column {
            Some(Column::Gpu) => {
                row.gpu.to_string() == term.word || row.searched(Column::Gpu) == term.word
            }
            Some(Column::Pid) => row.searched(Column::Pid) == term.word,
            Some(column) => row.searched(column).contains(&term.word),
            None => SEARCHED
                .iter()
                .any(|column| row.searched(*column).contains(&term.word)),
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
        let column = Column::of_id(&name.to_lowercase()).ok_or_else(|| {
            let known = Column::ALL.map(Column::id);
            match nearest(name, known) {
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
