//! A connection's origin, which is known before its first request.

use std::{
    net::{IpAddr, SocketAddr},
    sync::Arc,
};

use crate::{auth::Digest, peer::Peer};

#[derive(Clone)]
pub(crate) struct Arrival {
    /// The client's address and user. Behind a reverse proxy, the address is the one that the proxy
    /// reported.
    pub(crate) peer: Peer,
    /// The address of the reverse proxy that reported the client.
    pub(crate) proxy: Option<IpAddr>,
    /// The server's own address of the connection; `None` for a Unix socket.
    pub(crate) local: Option<SocketAddr>,
    pub(crate) is_tls: bool,
    /// The verified client certificate, if the client has sent one.
    pub(crate) certificate: Option<ClientCertificate>,
}

#[derive(Clone)]
pub(crate) struct ClientCertificate {
    pub(crate) name: Arc<str>,
    /// The digest of the settings for client certificates under which the certificate was verified.
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

    /// Adds the client's user. This is called after the connection was admitted.
    pub(super) async fn with_user(mut self, client: Option<SocketAddr>) -> Self {
        self.peer = self.peer.with_user_from_table(client, self.local).await;
        self
    }

    /// Returns the server's port that the client connected to.
    pub(crate) fn port(&self) -> u16 {
        self.local.map_or(0, |local| local.port())
    }
}
