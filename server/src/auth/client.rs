//! Who asks: where the request came from, and who somebody has shown to be.

use std::{
    collections::BTreeMap,
    net::IpAddr,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use gpumon_probe::owner::user_name;
use tokio::{task::spawn_blocking, time::Instant};

use super::{identity::Identity, scope::Scope};
use crate::peer::{Peer, Who};

/// How long a user's name is remembered.
const REMEMBERED: Duration = Duration::from_mins(1);

/// How many names are remembered.
const MOST_NAMES: usize = 1024;

static NAMES: UserNames = UserNames(Mutex::new(BTreeMap::new()));

/// Names of users by their IDs. A directory service that does not answer would block a thread for
/// each request.
struct UserNames(Mutex<BTreeMap<u32, (Instant, String)>>);

impl UserNames {
    fn find(&self, uid: u32) -> Option<String> {
        let names = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        names
            .get(&uid)
            .filter(|(read, _)| read.elapsed() < REMEMBERED)
            .map(|(_, name)| name.clone())
    }

    fn insert(&self, uid: u32, name: String) {
        let mut names = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        names.retain(|_, (read, _)| read.elapsed() < REMEMBERED);
        if names.len() < MOST_NAMES {
            names.insert(uid, (Instant::now(), name));
        }
    }
}

/// Of every request that has come through.
#[derive(Clone)]
pub(crate) struct Client {
    pub(crate) peer: Peer,
    /// `None` where nobody has to sign in.
    pub(crate) identity: Option<Arc<Identity>>,
}

impl Client {
    pub(crate) fn who(&self) -> Who {
        self.peer.who()
    }

    /// Whether what was shown is enough to start runs; `None` where nothing was asked for.
    pub(crate) fn may_run(&self) -> Option<bool> {
        self.identity
            .as_ref()
            .map(|identity| identity.scope >= Scope::Run)
    }

    /// The system's user, where one is known. A directory service may be asked for the name.
    pub(crate) async fn user(&self) -> Option<String> {
        if let Some(user) = self.identity.as_ref().and_then(|identity| identity.user()) {
            return Some(user.to_string());
        }
        let uid = self.peer.uid()?;
        if let Some(name) = NAMES.find(uid) {
            return Some(name);
        }
        let name = spawn_blocking(move || user_name(uid)).await.ok()?;
        NAMES.insert(uid, name.clone());
        Some(name)
    }

    /// `token ana at 10.0.0.7`, `user bob at the local socket`.
    pub(crate) async fn label(&self) -> String {
        let who = match &self.identity {
            Some(identity) => identity.to_string(),
            None => self
                .user()
                .await
                .map_or_else(|| "somebody".to_owned(), |user| format!("user {user}")),
        };
        format!("{who} at {}", place(self.peer))
    }
}

/// Where a peer is.
pub(crate) fn place(peer: Peer) -> String {
    match peer {
        Peer::Port { ip, .. } => ip.to_string(),
        Peer::Socket { .. } => "the local socket".to_owned(),
    }
}

/// What a peer is counted by. Whoever has one address of IPv6 has the 64 bits below it.
pub(super) fn counted(peer: Peer) -> Who {
    match peer.who() {
        Who::Address(IpAddr::V6(ip)) => {
            Who::Address(IpAddr::V6((ip.to_bits() & (u128::MAX << 64)).into()))
        }
        who => who,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_one_network_are_one_client() {
        let of = |ip: &str| {
            counted(Peer::Port {
                ip: ip.parse().unwrap(),
                uid: None,
            })
        };
        assert_eq!(of("2001:db8::1"), of("2001:db8::ffff:1"));
        assert_ne!(of("2001:db8::1"), of("2001:db8:0:1::1"));
        assert_ne!(of("10.0.0.1"), of("10.0.0.2"));
        assert_eq!(
            counted(Peer::Port {
                ip: [127, 0, 0, 1].into(),
                uid: Some(7)
            }),
            Who::User(7)
        );
    }
}
