//! The peers of connections: their users, and whether they may change anything.
//!
//! The kernel reports the user of a Unix socket's peer (`SO_PEERCRED`). For a TCP connection from
//! this machine, [`socket_owner`] queries the kernel. If the kernel does not support such queries,
//! [`tcp_table`] is searched.

mod socket_owner;
mod tcp_table;

use std::net::{IpAddr, SocketAddr};

use axum::{
    Extension,
    extract::Request,
    http::StatusCode,
    middleware::Next,
    response::{IntoResponse, Response},
};
use rustix::process::geteuid;
use tokio::{sync::Semaphore, task::spawn_blocking};

/// Limits the number of simultaneous searches in the table of connections, which can be megabytes
/// long.
static TABLE_SEARCHES: Semaphore = Semaphore::const_new(1);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Peer {
    /// A client on a TCP port.
    Port {
        ip: IpAddr,
        /// The user, if the connection is from this machine and the kernel reports the socket's
        /// owner.
        uid: Option<u32>,
    },
    /// A program of this user on this machine; `None` if the kernel does not report the user.
    Socket { uid: Option<u32> },
}

/// The key under which a client's connections are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum PeerKey {
    User(u32),
    /// The address of a client whose user is unknown.
    Address(IpAddr),
    /// A program on this machine whose user is unknown.
    Unknown,
}

/// Determines in advance whether the kernel can be queried for a connection's owner, so that the
/// first connection is not delayed.
pub(crate) fn detect_lookup_method() {
    socket_owner::is_available();
}

/// Returns `true` for a connection between two programs on this machine. The client then has a
/// loopback address or the server's address.
fn is_local_connection(client: SocketAddr, server: SocketAddr) -> bool {
    let (client, server) = (client.ip().to_canonical(), server.ip().to_canonical());
    client.is_loopback() || client == server
}

impl Peer {
    /// Returns the peer of a TCP connection. The accept loop calls this function, so it reads no
    /// files, and it queries the kernel only about connections from this machine, which takes 10
    /// us.
    pub(crate) fn from_tcp(client: SocketAddr, server: Option<SocketAddr>) -> Self {
        let local = server
            .filter(|server| is_local_connection(client, *server) && socket_owner::is_available());
        Self::Port {
            ip: client.ip().to_canonical(),
            uid: local.and_then(|server| socket_owner::find_uid_by_sock_diag(client, server)),
        }
    }

    /// Returns the peer with its user, which is searched in the kernel's table if the kernel does
    /// not support queries of single connections. This is called for admitted connections that have
    /// sent data.
    pub(crate) async fn with_user_from_table(
        self,
        client: Option<SocketAddr>,
        server: Option<SocketAddr>,
    ) -> Self {
        let (Self::Port { ip, uid: None }, Some(client), Some(server)) = (self, client, server)
        else {
            return self;
        };
        if !is_local_connection(client, server) || socket_owner::is_available() {
            return self;
        }
        let _turn = TABLE_SEARCHES.acquire().await;
        let search = move || {
            tcp_table::find_uid_in_tables(
                socket_owner::to_canonical(client),
                socket_owner::to_canonical(server),
            )
        };
        Self::Port {
            ip,
            uid: spawn_blocking(search).await.ok().flatten(),
        }
    }

    /// Returns the user, if the kernel reports it.
    pub(crate) fn uid(self) -> Option<u32> {
        match self {
            Self::Port { uid, .. } | Self::Socket { uid } => uid,
        }
    }

    /// Returns the peer behind the reverse proxy that connected to the port. Its address is the one
    /// that the proxy reported, if any. The user is unknown.
    pub(crate) fn with_forwarded_address(self, forwarded: Option<IpAddr>) -> Self {
        match self {
            Self::Port { ip, .. } => Self::Port {
                ip: forwarded.unwrap_or(ip),
                uid: None,
            },
            Self::Socket { .. } => self,
        }
    }

    /// Returns the peer as seen by another machine, where this machine's users have no meaning:
    /// without its user, unless that is the server's own user.
    pub(crate) fn without_local_user(self) -> Self {
        match self {
            _ if self.belongs_to_server_user() => self,
            Self::Port { ip, .. } => Self::Port { ip, uid: None },
            Self::Socket { .. } => Self::Socket { uid: None },
        }
    }

    pub(crate) fn key(self) -> PeerKey {
        match self {
            Self::Port { uid: Some(uid), .. } | Self::Socket { uid: Some(uid) } => {
                PeerKey::User(uid)
            }
            Self::Port { ip, uid: None } => PeerKey::Address(ip),
            Self::Socket { uid: None } => PeerKey::Unknown,
        }
    }

    pub(crate) fn uses_port(self) -> bool {
        matches!(self, Self::Port { .. })
    }

    pub(crate) fn belongs_to_server_user(self) -> bool {
        self.uid().is_some_and(is_server_user_or_root)
    }

    fn is_user_or_root(self, own: u32) -> bool {
        self.uid().is_some_and(|uid| uid == own || uid == 0)
    }
}

pub(crate) fn is_server_user_or_root(uid: u32) -> bool {
    uid == geteuid().as_raw() || uid == 0
}

pub(crate) async fn require_change_permission(
    Extension(peer): Extension<Peer>,
    request: Request,
    next: Next,
) -> Response {
    match check_change_permission(peer, geteuid().as_raw()) {
        Ok(()) => next.run(request).await,
        Err(message) => (StatusCode::FORBIDDEN, message).into_response(),
    }
}

fn check_change_permission(peer: Peer, own: u32) -> Result<(), &'static str> {
    match peer {
        Peer::Socket { .. } if peer.is_user_or_root(own) => Ok(()),
        Peer::Socket { .. } => {
            Err("only the user who started this server, or root, may send this request\n")
        }
        Peer::Port { .. } => Err(
            "this request is accepted only over the server's local socket, not over its port: use \
             `gpumon pause`, `gpumon resume` or `gpumon alerts silence` on the machine itself\n",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remote_connection_is_not_local() {
        let is_local = |client: &str, server: &str| {
            is_local_connection(client.parse().unwrap(), server.parse().unwrap())
        };
        assert!(
            is_local("127.0.0.1:50000", "127.0.0.1:9123") && is_local("[::1]:50000", "[::1]:9123")
        );
        assert!(
            is_local("10.0.0.7:50000", "10.0.0.7:9123")
                && is_local("[::ffff:10.0.0.7]:1", "10.0.0.7:9123")
        );
        assert!(
            !is_local("10.0.0.8:50000", "10.0.0.7:9123")
                && !is_local("[fd00::8]:50000", "[fd00::7]:9123")
        );
    }

    #[test]
    fn only_server_user_and_root_may_change_state() {
        let from = |uid| check_change_permission(Peer::Socket { uid }, 1000).is_ok();
        assert!(from(Some(1000)) && from(Some(0)));
        assert!(!from(Some(1001)) && !from(None));
        let port = Peer::Port {
            ip: [127, 0, 0, 1].into(),
            uid: Some(1000),
        };
        assert!(
            check_change_permission(port, 1000)
                .unwrap_err()
                .contains("gpumon pause")
        );
    }
}
