//! What is known of a connection before its first request.

use std::{
    net::{IpAddr, SocketAddr},
    sync::Arc,
};

use crate::{auth::Digest, peer::Peer};

#[derive(Clone)]
pub(crate) struct Arrival {
    /// The client; behind a reverse proxy, at the address that the proxy has reported.
    pub(crate) peer: Peer,
    /// The address of the reverse proxy that has reported the client.
    pub(crate) proxy: Option<IpAddr>,
    /// Where it arrived; `None` on a unix socket.
    pub(crate) local: Option<SocketAddr>,
    pub(crate) is_tls: bool,
    /// The client's own, where it has shown one that is verified.
    pub(crate) certificate: Option<ClientCertificate>,
}

#[derive(Clone)]
pub(crate) struct ClientCertificate {
    pub(crate) name: Arc<str>,
    /// What it was verified by.
    pub(crate) authority: Digest,
}

impl Arrival {
    pub(crate) fn new(peer: Peer, local: Option<SocketAddr>) -> Self {
        Self {
            peer,
            proxy: None,
            local,
            is_tls: false,
            certificate: None,
        }
    }

    /// Returns the same with the client's user, for a connection that has been admitted.
    pub(super) async fn identified(mut self, client: Option<SocketAddr>) -> Self {
        self.peer = self.peer.searched(client, self.local).await;
        self
    }

    /// Of the server.
    pub(crate) fn port(&self) -> u16 {
        self.local.map_or(0, |local| local.port())
    }
}
