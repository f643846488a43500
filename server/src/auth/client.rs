//! The client of a request: its address and its identity.

use std::{
    collections::BTreeMap,
    net::IpAddr,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use gpumon_probe::owner::user_name;
use tokio::{task::spawn_blocking, time::Instant};

use super::{identity::Identity, scope::Scope};
use crate::peer::{Peer, PeerKey};

/// The time for which a user's name is cached.
const NAME_CACHE_TIME: Duration = Duration::from_mins(1);

/// The maximum number of cached names.
const MAX_CACHED_NAMES: usize = 1024;

static USER_NAMES: UserNames = UserNames(Mutex::new(BTreeMap::new()));

/// The names of users by user ID. Without this cache, a directory service that does not respond
/// would block a thread for each request.
struct UserNames(Mutex<BTreeMap<u32, (Instant, String)>>);

impl UserNames {
    fn find(&self, uid: u32) -> Option<String> {
        let names = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        names
            .get(&uid)
            .filter(|(read, _)| read.elapsed() < NAME_CACHE_TIME)
            .map(|(_, name)| name.clone())
    }

    fn insert(&self, uid: u32, name: String) {
        let mut names = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        names.retain(|_, (read, _)| read.elapsed() < NAME_CACHE_TIME);
        if names.len() < MAX_CACHED_NAMES {
            names.insert(uid, (Instant::now(), name));
        }
    }
}

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

    /// Returns whether the client's scope allows runs, or `None` if no sign-in is required.
    pub(crate) fn may_start_runs(&self) -> Option<bool> {
        self.identity
            .as_ref()
            .map(|identity| identity.scope >= Scope::Run)
    }

    /// Returns the name of the system user, if known. This may query a directory service.
    pub(crate) async fn user(&self) -> Option<String> {
        if let Some(user) = self.identity.as_ref().and_then(|identity| identity.user()) {
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
    pub(crate) async fn label(&self) -> String {
        let user = match &self.identity {
            Some(identity) => identity.to_string(),
            None => self
                .user()
                .await
                .map_or_else(|| "somebody".to_owned(), |user| format!("user {user}")),
        };
        format!("{user} at {}", format_peer(self.peer))
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
pub(super) fn client_key(peer: Peer) -> PeerKey {
    match peer.key() {
        PeerKey::Address(IpAddr::V6(ip)) => {
            PeerKey::Address(IpAddr::V6((ip.to_bits() & (u128::MAX << 64)).into()))
        }
        user => user,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_one_network_count_as_one_client() {
        let of = |ip: &str| {
            client_key(Peer::Port {
                ip: ip.parse().unwrap(),
                uid: None,
            })
        };
        assert_eq!(of("2001:db8::1"), of("2001:db8::ffff:1"));
        assert_ne!(of("2001:db8::1"), of("2001:db8:0:1::1"));
        assert_ne!(of("10.0.0.1"), of("10.0.0.2"));
        assert_eq!(
            client_key(Peer::Port {
                ip: [127, 0, 0, 1].into(),
                uid: Some(7)
            }),
            PeerKey::User(7)
        );
    }
}
