//! The client of a request: its address, its authenticated identity, and the scopes of access.

use std::{
    collections::BTreeMap,
    fmt,
    net::IpAddr,
    str::FromStr,
    sync::{Arc, Mutex},
    time::Duration,
};

use axum::http::Method;
use gpumon_probe::owner::{clean_line, user_name};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::{task::spawn_blocking, time::Instant};

use super::credentials::Digest;
use crate::{
    lock,
    peer::{Peer, PeerKey},
};

/// The client of a request that was allowed.
#[derive(Clone)]
pub(crate) struct Client {
    pub(crate) peer: Peer,
    /// The client's identity, or `None` if no sign-in is required.
    pub(crate) identity: Option<Arc<Identity>>,
}

impl Client {
    pub(crate) fn peer_key(&self) -> PeerKey {
        self.peer.key()
    }

    /// Returns whether the client's scope allows starting runs, or `None` if no sign-in is
    /// required.
    pub(crate) fn may_start_runs(&self) -> Option<bool> {
        self.identity
            .as_ref()
            .map(|identity| identity.scope >= Scope::Run)
    }

    /// Returns the name of the system user, if known. This may query a directory service.
    pub(crate) async fn user_name(&self) -> Option<String> {
        if let Some(user) = self
            .identity
            .as_ref()
            .and_then(|identity| identity.user_name())
        {
            return Some(user.to_string());
        }
        let uid = self.peer.uid()?;
        if let Some(name) = USER_NAMES.find(uid) {
            return Some(name);
        }
        let name = spawn_blocking(move || user_name(uid)).await.ok()?;
        USER_NAMES.insert(uid, name.clone());
        Some(name)
    }

    /// Returns a label for the log, such as `token ana at 10.0.0.7` or `user bob at the local
    /// socket`.
    pub(crate) async fn log_label(&self) -> String {
        let user = match &self.identity {
            Some(identity) => identity.to_string(),
            None => self
                .user_name()
                .await
                .map_or_else(|| "somebody".to_owned(), |user| format!("user {user}")),
        };
        format!("{user} at {}", format_peer(self.peer))
    }
}

/// The time for which a user's name is cached.
const NAME_CACHE_TIME: Duration = Duration::from_mins(1);

/// The maximum number of cached names.
const MAX_CACHED_NAMES: usize = 1024;

static USER_NAMES: UserNames = UserNames(Mutex::new(BTreeMap::new()));

/// A cache of users' names by user ID. Without it, a directory service that does not respond would
/// block a thread for each request.
struct UserNames(Mutex<BTreeMap<u32, (Instant, String)>>);

impl UserNames {
    fn find(&self, uid: u32) -> Option<String> {
        let names = lock::lock(&self.0);
        names
            .get(&uid)
            .filter(|(read, _)| read.elapsed() < NAME_CACHE_TIME)
            .map(|(_, name)| name.clone())
    }

    fn insert(&self, uid: u32, name: String) {
        let mut names = lock::lock(&self.0);
        names.retain(|_, (read, _)| read.elapsed() < NAME_CACHE_TIME);
        if names.len() < MAX_CACHED_NAMES {
            names.insert(uid, (Instant::now(), name));
        }
    }
}

/// Returns the address of a peer for the log.
pub(crate) fn format_peer(peer: Peer) -> String {
    match peer {
        Peer::Port { ip, .. } => ip.to_string(),
        Peer::Socket { .. } => "the local socket".to_owned(),
    }
}

/// Returns the key under which a peer is counted. All addresses of an IPv6 /64 network count as one
/// client.
pub(super) fn rate_limit_key(peer: Peer) -> PeerKey {
    match peer.key() {
        PeerKey::Address(IpAddr::V6(ip)) => {
            PeerKey::Address(IpAddr::V6((ip.to_bits() & (u128::MAX << 64)).into()))
        }
        user => user,
    }
}

/// The maximum number of characters of a name in the log.
const MAX_LOGGED_NAME_CHARS: usize = 64;

/// The authenticated identity of a client.
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
    /// A client certificate. `authority` is a digest of the server's settings for client
    /// certificates at the time when the certificate was verified.
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
    pub(crate) fn user_name(&self) -> Option<&Arc<str>> {
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
            .take(MAX_LOGGED_NAME_CHARS)
            .collect();
        write!(f, "{kind} {name}")
    }
}

/// The path of the sign-in endpoint.
pub(crate) const SESSION_PATH: &str = "/api/v1/session";

/// A scope of access. Each scope includes those before it.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Scope {
    /// The metrics, and whether the server is ready.
    Metrics,
    /// All readings and states that the server shows.
    Read,
    /// Starting and canceling runs, setting marks, and controlling a replay.
    Run,
}

const ALL_SCOPES: [Scope; 3] = [Scope::Metrics, Scope::Read, Scope::Run];

impl Scope {
    /// Returns the scope that a request needs, or `None` if no credentials are needed: to load the
    /// page without its data, to sign in, or to check whether the server is alive. Unknown paths
    /// below `/api/` need at least [`Scope::Read`].
    pub(crate) fn required_scope(method: &Method, path: &str) -> Option<Self> {
        let is_reading = method == Method::GET || method == Method::HEAD;
        match path {
            "/healthz" | SESSION_PATH => None,
            "/metrics" | "/metrics/dcgm" | "/metrics/dcgm-4.9" | "/readyz" if is_reading => {
                Some(Self::Metrics)
            }
            // Requests that are passed on to a node need only the read scope here. Viewers sign in
            // at the node, and the node checks whether they may change anything.
            _ if path.starts_with("/nodes/") => Some(Self::Read),
            _ if !is_reading => Some(Self::Run),
            _ if path.starts_with("/api/") => Some(Self::Read),
            _ => None,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Metrics => "metrics",
            Self::Read => "read",
            Self::Run => "run",
        }
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Scope {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        ALL_SCOPES
            .into_iter()
            .find(|scope| scope.name() == text)
            .ok_or(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_one_network_count_as_one_client() {
        let of = |ip: &str| {
            rate_limit_key(Peer::Port {
                ip: ip.parse().unwrap(),
                uid: None,
            })
        };
        assert_eq!(of("2001:db8::1"), of("2001:db8::ffff:1"));
        assert_ne!(of("2001:db8::1"), of("2001:db8:0:1::1"));
        assert_ne!(of("10.0.0.1"), of("10.0.0.2"));
        assert_eq!(
            rate_limit_key(Peer::Port {
                ip: [127, 0, 0, 1].into(),
                uid: Some(7)
            }),
            PeerKey::User(7)
        );
    }

    #[test]
    fn each_scope_includes_lower_scopes() {
        assert!(Scope::Metrics < Scope::Read && Scope::Read < Scope::Run);
        assert_eq!("run".parse(), Ok(Scope::Run));
        assert!("Run".parse::<Scope>().is_err() && "".parse::<Scope>().is_err());
    }

    #[test]
    fn scope_depends_on_method_and_path() {
        let required = |method: &str, path| Scope::required_scope(&method.parse().unwrap(), path);
        for (path, scope) in [
            ("/healthz", None),
            ("/", None),
            ("/assets/main.js", None),
            ("/metrics", Some(Scope::Metrics)),
            ("/metrics/dcgm", Some(Scope::Metrics)),
            ("/metrics/dcgm-4.9", Some(Scope::Metrics)),
            ("/readyz", Some(Scope::Metrics)),
            ("/api/v1/snapshot", Some(Scope::Read)),
            ("/api/v1/stream", Some(Scope::Read)),
            ("/api/v2/whatever", Some(Scope::Read)),
        ] {
            assert_eq!(required("GET", path), scope, "{path}");
            assert_eq!(required("HEAD", path), scope, "{path}");
        }
        for method in ["POST", "DELETE", "PUT", "PATCH", "OPTIONS", "TRACE", "BREW"] {
            assert_eq!(
                required(method, "/api/v1/runs"),
                Some(Scope::Run),
                "{method}"
            );
            assert_eq!(required(method, "/metrics"), Some(Scope::Run), "{method}");
        }
    }
}
