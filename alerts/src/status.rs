//! The status of an alert in a notification.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    Firing,
    Resolved,
}

impl Status {
    /// Returns the status as a word for programs.
    pub fn word(self) -> &'static str {
        match self {
            Self::Firing => "firing",
            Self::Resolved => "resolved",
        }
    }
}
