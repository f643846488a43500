//! The peers of connections: their user, and whether they may change anything.
//!
//! The kernel reports the user of a unix socket's peer (`SO_PEERCRED`). For a TCP connection from
//! this machine, [`socket_owner`] asks the kernel; if it does not answer, [`tcp_table`] is
//! searched.

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

/// The limit of simultaneous searches in the table of connections, which can have megabytes.
static TABLE_SEARCHES: Semaphore = Semaphore::const_new(1);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Peer {
    /// A client on the port.
    Port {
        ip: IpAddr,
        /// The user, if the connection is from this machine and the kernel reports its owner.
        uid: Option<u32>,
    },
    /// A program of this user on this machine; `None` if the kernel does not report the user.
    Socket { uid: Option<u32> },
}

/// The client for which connections are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Who {
    User(u32),
    /// An address whose user is unknown.
    Address(IpAddr),
    /// A program on this machine whose user is unknown.
    Unknown,
}

/// Determines in advance how the owners of connections are looked up, so that the first connection
/// is not delayed.
pub(crate) fn prepare() {
    socket_owner::is_available();
}

/// Returns `true` for a connection between two programs on this machine: its client has a loopback
/// address, or the same address as the server.
fn is_local(client: SocketAddr, server: SocketAddr) -> bool {
    let (client, server) = (client.ip().to_canonical(), server.ip().to_canonical());
    client.is_loopback() || client == server
}

impl Peer {
    /// Returns the peer of a TCP connection. This is called by the loop that accepts connections:
    /// it reads no file, and asks the kernel only about connections from this machine, which takes
    /// 10 us.
    pub(crate) fn of_port(client: SocketAddr, server: Option<SocketAddr>) -> Self {
        let local =
            server.filter(|server| is_local(client, *server) && socket_owner::is_available());
        Self::Port {
            ip: client.ip().to_canonical(),
            uid: local.and_then(|server| socket_owner::uid_of(client, server)),
        }
    }

    /// Adds the user, even if the kernel does not support queries of single connections and its
    /// table must be searched. This is called for admitted connections that have sent something.
    pub(crate) async fn searched(
        self,
        client: Option<SocketAddr>,
        server: Option<SocketAddr>,
    ) -> Self {
        let (Self::Port { ip, uid: None }, Some(client), Some(server)) = (self, client, server)
        else {
            return self;
        };
        if !is_local(client, server) || socket_owner::is_available() {
            return self;
        }
        let _turn = TABLE_SEARCHES.acquire().await;
        let search = move || {
            tcp_table::uid_of(
                socket_owner::canonical(client),
                socket_owner::canonical(server),
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

    /// Returns the client of the reverse proxy that has connected to the port. It has no user; its
    /// address is that reported by the proxy, if any.
    pub(crate) fn behind_proxy(self, forwarded: Option<IpAddr>) -> Self {
        match self {
            Self::Port { ip, .. } => Self::Port {
                ip: forwarded.unwrap_or(ip),
                uid: None,
            },
            Self::Socket { .. } => self,
        }
    }

    /// Returns the peer for the data of another machine, on which users of this machine have no
    /// meaning. The server's own user is kept.
    pub(crate) fn of_other_machine(self) -> Self {
        match self {
            _ if self.is_own() => self,
            Self::Port { ip, .. } => Self::Port { ip, uid: None },
            Self::Socket { .. } => Self::Socket { uid: None },
        }
    }

    pub(crate) fn who(self) -> Who {
        match self {
            Self::Port { uid: Some(uid), .. } | Self::Socket { uid: Some(uid) } => Who::User(uid),
            Self::Port { ip, uid: None } => Who::Address(ip),
            Self::Socket { uid: None } => Who::Unknown,
        }
    }

    pub(crate) fn is_port(self) -> bool {
        matches!(self, Self::Port { .. })
    }

    pub(crate) fn is_own(self) -> bool {
        self.uid().is_some_and(is_own_user)
    }

    fn is_of(self, own: u32) -> bool {
        self.uid().is_some_and(|uid| uid == own || uid == 0)
    }
}

pub(crate) fn is_own_user(uid: u32) -> bool {
    uid == geteuid().as_raw() || uid == 0
}

pub(crate) async fn may_change(
    Extension(peer): Extension<Peer>,
    request: Request,
    next: Next,
) -> Response {
    match verdict(peer, geteuid().as_raw()) {
        Ok(()) => next.run(request).await,
        Err(message) => (StatusCode::FORBIDDEN, message).into_response(),
    }
}

fn verdict(peer: Peer, own: u32) -> Result<(), &'static str> {
    match peer {
        Peer::Socket { .. } if peer.is_of(own) => Ok(()),
        Peer::Socket { .. } => Err("only the user who started this server, or root, may do that\n"),
        Peer::Port { .. } => Err(
            "this is done over the server's local socket, not over its port: use `gpumon pause`, \
                           `gpumon resume` or `gpumon alerts silence` on the machine itself\n",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remote_connection_is_not_local() {
        let is_local =
            |client: &str, server: &str| is_local(client.parse().unwrap(), server.parse().unwrap());
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
    fn the_own_user_and_root_may_and_nobody_else() {
        let from = |uid| verdict(Peer::Socket { uid }, 1000).is_ok();
        assert!(from(Some(1000)) && from(Some(0)));
        assert!(!from(Some(1001)) && !from(None));
        let port = Peer::Port {
            ip: [127, 0, 0, 1].into(),
            uid: Some(1000),
        };
        assert!(verdict(port, 1000).unwrap_err().contains("gpumon pause"));
    }
}
