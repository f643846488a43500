//! Something that can be said, and how much it matters.

use gpumon_probe::model::Severity;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Phrase {
    /// At most [`Phrase::SHORT`] columns.
    pub(crate) short: String,
    /// With what to do about it, where that can be said.
    pub(crate) long: String,
    pub(crate) level: Level,
}

impl Phrase {
    /// The columns that views keep free for the first phrase of a GPU.
    pub(crate) const SHORT: usize = 24;

    pub(super) fn new(level: Level, short: impl Into<String>, long: impl Into<String>) -> Self {
        Self {
            short: short.into(),
            long: long.into(),
            level,
        }
    }
}

/// How much it matters, the most first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Level {
    /// Somebody should act.
    Act,
    /// Worth a look.
    Warn,
    /// Worth knowing.
    Note,
    /// As it should be.
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
