//! The result of a check.

use serde::Serialize;

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Finding {
    /// The subject of the check, in one or two words.
    pub(super) check: String,
    pub(super) verdict: Verdict,
    /// The result of the check, as a sentence.
    #[serde(rename = "finding")]
    pub(super) text: String,
    pub(super) cure: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Verdict {
    Ok,
    /// Everything works, but the user should know about something.
    Note,
    /// Something works worse than it should, or may soon stop working.
    Warning,
    /// Something does not work.
    Problem,
}

impl Verdict {
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Note => "note",
            Self::Warning => "warning",
            Self::Problem => "problem",
        }
    }
}

impl Finding {
    pub(super) fn new(check: impl Into<String>, verdict: Verdict, text: impl Into<String>) -> Self {
        Self {
            check: check.into(),
            verdict,
            text: text.into(),
            cure: None,
        }
    }

    pub(super) fn new_ok(check: impl Into<String>, text: impl Into<String>) -> Self {
        Self::new(check, Verdict::Ok, text)
    }

    pub(super) fn new_note(check: impl Into<String>, text: impl Into<String>) -> Self {
        Self::new(check, Verdict::Note, text)
    }

    pub(super) fn new_warning(
        check: impl Into<String>,
        text: impl Into<String>,
        cure: impl Into<String>,
    ) -> Self {
        Self::new(check, Verdict::Warning, text).with_cure(cure)
    }

    pub(super) fn new_problem(
        check: impl Into<String>,
        text: impl Into<String>,
        cure: impl Into<String>,
    ) -> Self {
        Self::new(check, Verdict::Problem, text).with_cure(cure)
    }

    /// Returns this finding with advice for the user.
    pub(super) fn with_cure(self, cure: impl Into<String>) -> Self {
        Self {
            cure: Some(cure.into()),
            ..self
        }
    }
}
