//! What is known of a connection before its first request.

use std::{net::SocketAddr, sync::Arc};

use crate::{auth::Digest, peer::Peer};

#[derive(Clone)]
pub(crate) struct Arrival {
    pub(crate) peer: Peer,
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
        Self { peer, local, is_tls: false, certificate: None }
    }

    /// Of the server.
    pub(crate) fn port(&self) -> u16 {
        self.local.map_or(0, |local| local.port())
    }
}
