//! Who is at the other end of a connection, and whether they may change anything.
//!
//! On a TCP port nobody can tell, for every user of the machine reaches it. On a unix socket the kernel tells.

use std::net::SocketAddr;

use axum::{
    extract::{ConnectInfo, Request, connect_info::Connected},
    http::StatusCode,
    middleware::Next,
    response::{IntoResponse, Response},
    serve::IncomingStream,
};
use rustix::process::geteuid;
use tokio::net::{TcpListener, UnixListener};

/// The other end of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Peer {
    /// Anybody who reaches the port: the addresses of both ends, as far as they are known.
    Port { client: SocketAddr, server: Option<SocketAddr> },
    /// A program of this user (`SO_PEERCRED`); `None` where the kernel did not tell.
    Socket { uid: Option<u32> },
}

impl Connected<IncomingStream<'_, TcpListener>> for Peer {
    fn connect_info(stream: IncomingStream<'_, TcpListener>) -> Self {
        Self::Port { client: *stream.remote_addr(), server: stream.io().local_addr().ok() }
    }
}

impl Connected<IncomingStream<'_, UnixListener>> for Peer {
    fn connect_info(stream: IncomingStream<'_, UnixListener>) -> Self {
        Self::Socket { uid: stream.io().peer_cred().ok().map(|peer| peer.uid()) }
    }
}

/// Lets those through who may change what the server does.
pub(crate) async fn may_change(ConnectInfo(peer): ConnectInfo<Peer>, request: Request, next: Next) -> Response {
    match verdict(peer, geteuid().as_raw()) {
        Ok(()) => next.run(request).await,
        Err(message) => (StatusCode::FORBIDDEN, message).into_response(),
    }
}

fn verdict(peer: Peer, own: u32) -> Result<(), &'static str> {
    match peer {
        Peer::Socket { uid: Some(uid) } if uid == own || uid == 0 => Ok(()),
        Peer::Socket { .. } => Err("only the user who started this server, or root, may do that\n"),
        Peer::Port { .. } => {
            Err("this is done over the server's local socket, not over its port: use `gpumon pause` or \
                           `gpumon resume` on the machine itself\n")
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
        let port = Peer::Port { client: ([127, 0, 0, 1], 50_000).into(), server: None };
        assert!(verdict(port, 1000).unwrap_err().contains("gpumon pause"));
    }
}
