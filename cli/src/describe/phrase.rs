//! Statements about a GPU, with their importance.

use gpumon_probe::model::Severity;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Phrase {
    /// The short form of the phrase, at most [`Phrase::MAX_SHORT_WIDTH`] columns wide.
    pub(crate) short: String,
    /// The long form of the phrase, which includes a remedy if there is one.
    pub(crate) long: String,
    pub(crate) level: Level,
}

impl Phrase {
    /// The width in columns that views reserve for a GPU's first phrase.
    pub(crate) const MAX_SHORT_WIDTH: usize = 24;

    pub(super) fn new(level: Level, short: impl Into<String>, long: impl Into<String>) -> Self {
        Self {
            short: short.into(),
            long: long.into(),
            level,
        }
    }
}

/// The importance of a phrase. The most important level comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Level {
    /// A problem that needs action.
    Act,
    /// A problem that deserves attention.
    Warn,
    /// Useful information.
    Note,
    /// A normal state, shown only for information.
    Quiet,
}

impl From<Severity> for Level {
    fn from(severity: Severity) -> Self {
        match severity {
            Severity::Notice => Self::Note,
            Severity::Warning => Self::Warn,
            Severity::Critical => Self::Act,
        }
    }
}
