//! Statements about a GPU, with their importance.

use gpumon_probe::model::Severity;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Phrase {
    /// The short form, which fits the width that views reserve for it.
    pub(crate) short: String,
    /// The long form, which includes a remedy if there is one.
    pub(crate) long: String,
    pub(crate) level: Level,
}

impl Phrase {
    /// The width that views reserve for the first phrase of a GPU, in columns.
    pub(crate) const SHORT: usize = 24;

    pub(super) fn new(level: Level, short: impl Into<String>, long: impl Into<String>) -> Self {
        Self {
            short: short.into(),
            long: long.into(),
            level,
        }
    }
}

/// The importance of a phrase, in descending order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Level {
    /// A problem that needs action.
    Act,
    /// A problem that deserves attention.
    Warn,
    /// Useful information.
    Note,
    /// A normal state.
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
