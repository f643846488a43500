//! The identity that a client has proved.

use std::{fmt, sync::Arc};

use gpumon_probe::owner::clean_line;

use super::{digest::Digest, scope::Scope};

/// The maximum number of characters of a name in the log.
const LONGEST_NAME: usize = 64;

#[derive(Clone)]
pub(crate) struct Identity {
    pub(crate) name: Arc<str>,
    pub(crate) scope: Scope,
    pub(crate) proof: Proof,
}

/// The credentials that have proved an identity. They can be revoked at any time.
#[derive(Clone)]
pub(crate) enum Proof {
    Token(Digest),
    /// The password of a user, with the digest of its hash.
    Password {
        user: Arc<str>,
        hash: Digest,
    },
    /// A certificate, with the digest of the authority that was trusted at the time.
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
    /// Returns the credentials that a session was started with.
    pub(crate) fn origin(&self) -> &Self {
        match self {
            Self::Session { by, .. } => by.origin(),
            other => other,
        }
    }
}

impl Identity {
    /// Returns a digest for counting requests. A session counts as the credentials that it was
    /// started with.
    pub(super) fn digest(&self) -> Digest {
        match self.proof.origin() {
            Proof::Token(digest) => *digest,
            Proof::Password { user, .. } => Digest::new(&[b"requests of user", user.as_bytes()]),
            Proof::Certificate { .. } | Proof::Session { .. } => {
                Digest::new(&[b"requests of certificate", self.name.as_bytes()])
            }
        }
    }

    /// Returns the name of the system user. Names of tokens and certificates are only labels.
    pub(crate) fn user(&self) -> Option<&Arc<str>> {
        match self.proof.origin() {
            Proof::Password { user, .. } => Some(user),
            _ => None,
        }
    }
}

/// Writes the kind and name for the log, such as `token grafana` or `user ana`.
impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.proof.origin() {
            Proof::Token(_) => "token",
            Proof::Password { .. } => "user",
            Proof::Certificate { .. } | Proof::Session { .. } => "certificate",
        };
        let name: String = clean_line(&self.name).chars().take(LONGEST_NAME).collect();
        write!(f, "{kind} {name}")
    }
}
