//! Which processes are wanted, in words.

use super::{columns::Column, rows::Row};

/// Words that must all occur; one with a column before it (`user:ana`) must occur there.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(in crate::top) struct Filter {
    pub(in crate::top) text: String,
    terms: Vec<Term>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Term {
    column: Option<Column>,
    /// In small letters.
    word: String,
}

/// Where a word without a column is looked for.
const SEARCHED: [Column; 3] = [Column::What, Column::User, Column::Pid];

impl Filter {
    pub(in crate::top) fn new(text: &str) -> Self {
        let term = |word: &str| {
            let named = word.split_once(':').and_then(|(column, word)| Some((Column::of_id(column)?, word)));
            match named {
                Some((column, word)) => Term { column: Some(column), word: word.to_lowercase() },
                None => Term { column: None, word: word.to_lowercase() },
            }
        };
        Self { text: text.to_owned(), terms: text.split_whitespace().map(term).collect() }
    }

    pub(in crate::top) fn is_empty(&self) -> bool {
        self.terms.is_empty()
    }

    /// Whether all its words occur in a row. A number must be the whole of it: `gpu:1` is not GPU 10.
    pub(in crate::top) fn admits(&self, row: &Row<'_>) -> bool {
        self.terms.iter().all(|term| match term.column {
            Some(column @ (Column::Gpu | Column::Pid)) => row.cell(column, 0) == term.word,
            Some(column) => row.cell(column, 0).to_lowercase().contains(&term.word),
            None => SEARCHED.iter().any(|column| row.cell(*column, 0).to_lowercase().contains(&term.word)),
        })
    }
}
