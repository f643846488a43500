//! Who somebody has shown to be.

use std::{fmt, sync::Arc};

use gpumon_probe::owner::clean_line;

use super::{digest::Digest, scope::Scope};

/// Characters of a name in the log.
const LONGEST_NAME: usize = 64;

#[derive(Clone)]
pub(crate) struct Identity {
    pub(crate) name: Arc<str>,
    pub(crate) scope: Scope,
    pub(crate) proof: Proof,
}

/// By what. What it was shown by may be taken back at any time.
#[derive(Clone)]
pub(crate) enum Proof {
    Token(Digest),
    /// A user's name and the hash of the password.
    Password {
        user: Arc<str>,
        hash: Digest,
    },
    /// A certificate by the authority that counted then.
    Certificate {
        authority: Digest,
    },
    /// Who signed in, by one of the others.
    Session {
        id: Digest,
        by: Box<Self>,
    },
}

impl Proof {
    /// What it came from.
    pub(crate) fn origin(&self) -> &Self {
        match self {
            Self::Session { by, .. } => by.origin(),
            other => other,
        }
    }
}

impl Identity {
    /// Returns a digest of what was shown, by which requests are counted. A session counts as what
    /// it was begun with.
    pub(super) fn digest(&self) -> Digest {
        match self.proof.origin() {
            Proof::Token(digest) => *digest,
            Proof::Password { user, .. } => Digest::new(&[b"requests of user", user.as_bytes()]),
            Proof::Certificate { .. } | Proof::Session { .. } => {
                Digest::new(&[b"requests of certificate", self.name.as_bytes()])
            }
        }
    }

    /// The system's user of this name, where it is one's name and not only a label.
    pub(crate) fn user(&self) -> Option<&Arc<str>> {
        match self.proof.origin() {
            Proof::Password { user, .. } => Some(user),
            _ => None,
        }
    }
}

/// `token grafana`, `user ana`, `certificate CN=node-7`.
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
