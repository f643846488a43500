//! Counts of wrong tokens and passwords.

use std::{
    fmt,
    sync::atomic::{AtomicU64, Ordering::Relaxed},
};

/// The kinds of credentials.
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

/// The numbers of wrong tokens and passwords since the server's start.
#[derive(Debug, Default)]
pub(crate) struct RefusedCredentials {
    tokens: AtomicU64,
    passwords: AtomicU64,
}

impl RefusedCredentials {
    pub(crate) fn count(&self, credential: Credential) {
        self.counter_for(credential).fetch_add(1, Relaxed);
    }

    /// Returns the number of refusals for each kind of credential.
    pub(crate) fn counts_by_kind(&self) -> [(Credential, u64); 2] {
        [Credential::Token, Credential::Password]
            .map(|kind| (kind, self.counter_for(kind).load(Relaxed)))
    }

    fn counter_for(&self, credential: Credential) -> &AtomicU64 {
        match credential {
            Credential::Token => &self.tokens,
            Credential::Password => &self.passwords,
        }
    }
}
