//! The authenticated identity of a client.

use std::{fmt, sync::Arc};

use gpumon_probe::owner::clean_line;

use super::{digest::Digest, scope::Scope};

/// The maximum number of a name's characters that are written to the log.
const MAX_NAME_CHARS: usize = 64;

#[derive(Clone)]
pub(crate) struct Identity {
    pub(crate) name: Arc<str>,
    pub(crate) scope: Scope,
    pub(crate) proof: Proof,
}

/// The credentials that proved an identity. They can be revoked at any time.
#[derive(Clone)]
pub(crate) enum Proof {
    Token(Digest),
    /// A user's password. `hash` is the digest of the bcrypt hash in the web configuration.
    Password {
        user: Arc<str>,
        hash: Digest,
    },
    /// A client certificate. `authority` is the digest of the settings for client certificates
    /// under which it was verified.
    Certificate {
        authority: Digest,
    },
    /// A session that was started with other credentials.
    Session {
        id: Digest,
        by: Box<Self>,
    },
}

impl Proof {
    /// Returns the credentials that a session was started with, or `self` if this is not a session.
    pub(crate) fn original_proof(&self) -> &Self {
        match self {
            Self::Session { by, .. } => by.original_proof(),
            other => other,
        }
    }
}

impl Identity {
    /// Returns a digest for counting requests. A session has the digest of the credentials that it
    /// was started with.
    pub(super) fn digest(&self) -> Digest {
        match self.proof.original_proof() {
            Proof::Token(digest) => *digest,
            Proof::Password { user, .. } => Digest::new(&[b"requests of user", user.as_bytes()]),
            Proof::Certificate { .. } | Proof::Session { .. } => {
                Digest::new(&[b"requests of certificate", self.name.as_bytes()])
            }
        }
    }

    /// Returns the name of the system user, or `None` for tokens and certificates, which only have
    /// labels.
    pub(crate) fn user(&self) -> Option<&Arc<str>> {
        match self.proof.original_proof() {
            Proof::Password { user, .. } => Some(user),
            _ => None,
        }
    }
}

/// Writes the kind and name for the log, such as `token grafana` or `user ana`.
impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.proof.original_proof() {
            Proof::Token(_) => "token",
            Proof::Password { .. } => "user",
            Proof::Certificate { .. } | Proof::Session { .. } => "certificate",
        };
        let name: String = clean_line(&self.name)
            .chars()
            .take(MAX_NAME_CHARS)
            .collect();
        write!(f, "{kind} {name}")
    }
}
