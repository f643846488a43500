//! Whether an alert fires.

/// What has become of an alert.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// It fires.
    Firing,
    /// It fires no more.
    Resolved,
}

impl Status {
    /// As programs read it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Firing => "firing",
            Self::Resolved => "resolved",
        }
    }
}
