//! Who is at the other end of a connection, what they may see and whether they may change anything.
//!
//! On a unix socket the kernel tells whose program it is (`SO_PEERCRED`), on a TCP port of this machine
//! [`socket_owner`] asks for it.

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

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Peer {
    /// Whoever reaches the port.
    Port {
        ip: IpAddr,
        /// Their user, where the connection comes from this machine and the kernel tells.
        uid: Option<u32>,
    },
    /// A program of this user on this machine; `None` where the kernel did not tell.
    Socket { uid: Option<u32> },
}

/// Who connections are counted for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Who {
    User(u32),
    /// An address, where the user is not known.
    Address(IpAddr),
    /// A program of this machine whose user is not known.
    Unknown,
}

impl Peer {
    pub(crate) fn of_port(client: SocketAddr, server: Option<SocketAddr>) -> Self {
        Self::Port {
            ip: client.ip().to_canonical(),
            uid: server.and_then(|server| socket_owner::uid_of(client, server)),
        }
    }

    /// Their user, where the kernel tells.
    pub(crate) fn uid(self) -> Option<u32> {
        match self {
            Self::Port { uid, .. } | Self::Socket { uid } => uid,
        }
    }

    /// The same without a user: the proxy that connects to the port is not the one who asks.
    pub(crate) fn behind_proxy(self) -> Self {
        match self {
            Self::Port { ip, .. } => Self::Port { ip, uid: None },
            Self::Socket { .. } => self,
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

pub(crate) async fn may_change(Extension(peer): Extension<Peer>, request: Request, next: Next) -> Response {
    match verdict(peer, geteuid().as_raw()) {
        Ok(()) => next.run(request).await,
        Err(message) => (StatusCode::FORBIDDEN, message).into_response(),
    }
}

fn verdict(peer: Peer, own: u32) -> Result<(), &'static str> {
    match peer {
        Peer::Socket { .. } if peer.is_of(own) => Ok(()),
        Peer::Socket { .. } => Err("only the user who started this server, or root, may do that\n"),
        Peer::Port { .. } => {
            Err("this is done over the server's local socket, not over its port: use `gpumon pause`, \
                           `gpumon resume` or `gpumon alerts silence` on the machine itself\n")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_own_user_and_root_may_and_nobody_else() {
        let from = |uid| verdict(Peer::Socket { uid }, 1000).is_ok();
        assert!(from(Some(1000)) && from(Some(0)));
        assert!(!from(Some(1001)) && !from(None));
        let port = Peer::Port { ip: [127, 0, 0, 1].into(), uid: Some(1000) };
        assert!(verdict(port, 1000).unwrap_err().contains("gpumon pause"));
    }
}
