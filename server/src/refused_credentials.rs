//! Counts of wrong tokens and passwords.

use std::{
    fmt,
    sync::atomic::{AtomicU64, Ordering::Relaxed},
};

/// The kind of a credential.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Credential {
    Token,
    Password,
}

impl fmt::Display for Credential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Token => "token",
            Self::Password => "password",
        })
    }
}

/// The counts since the server's start.
#[derive(Debug, Default)]
pub(crate) struct RefusedCredentials {
    tokens: AtomicU64,
    passwords: AtomicU64,
}

impl RefusedCredentials {
    pub(crate) fn count(&self, credential: Credential) {
        self.of(credential).fetch_add(1, Relaxed);
    }

    /// Returns the counts by kind.
    pub(crate) fn by_kind(&self) -> [(Credential, u64); 2] {
        [Credential::Token, Credential::Password].map(|kind| (kind, self.of(kind).load(Relaxed)))
    }

    fn of(&self, credential: Credential) -> &AtomicU64 {
        match credential {
            Credential::Token => &self.tokens,
            Credential::Password => &self.passwords,
        }
    }
}
