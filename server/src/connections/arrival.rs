//! The origin of a connection, which is known before its first request. For requests through a
//! reverse proxy, it is replaced by the origin of the proxy's client.

use std::{
    net::{IpAddr, SocketAddr},
    sync::Arc,
};

use axum::{
    extract::{Request, State},
    http::{HeaderMap, HeaderName, header},
    middleware::Next,
    response::Response,
};
use tokio::sync::watch;

use crate::{auth::Digest, live_settings::LiveSettings, peer::Peer};

/// The origin of a connection.
#[derive(Clone)]
pub(crate) struct Arrival {
    /// The client's address and user. Behind a reverse proxy, the address is the one that the proxy
    /// reported.
    pub(crate) peer: Peer,
    /// The address of the reverse proxy that reported the client's address, if there is one.
    pub(crate) proxy: Option<IpAddr>,
    /// The server's own address of the connection; `None` for a Unix socket.
    pub(crate) local: Option<SocketAddr>,
    pub(crate) is_tls: bool,
    /// The verified client certificate, if the client has sent one.
    pub(crate) certificate: Option<ClientCertificate>,
}

/// A verified client certificate.
#[derive(Clone)]
pub(crate) struct ClientCertificate {
    pub(crate) name: Arc<str>,
    /// A digest of the server's settings for client certificates at the time when the certificate
    /// was verified.
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

    /// Adds the client's user to the origin. The search for the user can be slow, so this is called
    /// only after the connection was admitted.
    pub(super) async fn with_user(mut self, client: Option<SocketAddr>) -> Self {
        self.peer = self.peer.with_user_from_table(client, self.local).await;
        self
    }

    /// Returns the server's port that the client connected to.
    pub(crate) fn server_port(&self) -> u16 {
        self.local.map_or(0, |local| local.port())
    }
}

// Clients of a reverse proxy. Their connections come from the proxy. A fleet's server is also a
// proxy: it passes its viewers' requests on to nodes, and marks them with a header.
//
// A proxy named by `--public-origin` appends its client's address to `X-Forwarded-For`, after any
// addresses that the client itself sent. Only the last address is therefore trusted.

/// The value of the header `Via` that marks requests that a fleet's server passes on to a node (RFC
/// 9110, section 7.6.3).
pub(crate) const FLEET_VIA: &str = "1.1 gpumon-fleet";
const FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");

/// Replaces the proxy by its client in the request's origin. This happens before any other
/// processing, because the connection's user is the proxy's user, not the client's. It is decided
/// for each request, so that a changed setting also applies to open connections.
pub(crate) async fn replace_proxy_by_client(
    State(live): State<watch::Receiver<LiveSettings>>,
    mut request: Request,
    next: Next,
) -> Response {
    let is_passed_on = request
        .headers()
        .get_all(header::VIA)
        .iter()
        .any(|by| by == FLEET_VIA);
    let has_proxy = live.borrow().is_behind_proxy();
    if is_passed_on || has_proxy {
        let forwarded = parse_forwarded_for(request.headers()).filter(|_| has_proxy);
        let known = request.extensions_mut();
        if let Some(arrival) = known.get_mut::<Arrival>() {
            arrival.proxy = match (arrival.peer, forwarded) {
                (Peer::Port { ip, .. }, Some(_)) => Some(ip),
                _ => None,
            };
            arrival.peer = arrival.peer.with_forwarded_address(forwarded);
        }
        if let Some(peer) = known.get_mut::<Peer>() {
            *peer = peer.with_forwarded_address(forwarded);
        }
    }
    next.run(request).await
}

/// Returns the last address in `X-Forwarded-For`, which the nearest proxy has appended.
fn parse_forwarded_for(headers: &HeaderMap) -> Option<IpAddr> {
    let last = headers
        .get_all(FORWARDED_FOR)
        .iter()
        .next_back()?
        .to_str()
        .ok()?
        .rsplit(',')
        .next()?
        .trim();
    let ip = last
        .trim_start_matches('[')
        .trim_end_matches(']')
        .parse::<IpAddr>();
    let ip = ip.or_else(|_| last.parse::<SocketAddr>().map(|address| address.ip()));
    ip.ok().map(|ip| ip.to_canonical())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn client_address_is_last_forwarded_address() {
        let of = |values: &[&str]| {
            let headers = values
                .iter()
                .map(|value| (FORWARDED_FOR, value.parse().unwrap()))
                .collect();
            parse_forwarded_for(&headers).map(|ip| ip.to_string())
        };
        assert_eq!(of(&["10.0.0.7"]).as_deref(), Some("10.0.0.7"));
        assert_eq!(of(&["1.2.3.4, 10.0.0.7"]).as_deref(), Some("10.0.0.7"));
        assert_eq!(of(&["1.2.3.4", "10.0.0.7"]).as_deref(), Some("10.0.0.7"));
        assert_eq!(of(&["fd00::7"]).as_deref(), Some("fd00::7"));
        assert_eq!(of(&["[fd00::7]:50000"]).as_deref(), Some("fd00::7"));
        assert_eq!(of(&["::ffff:10.0.0.7"]).as_deref(), Some("10.0.0.7"));
        for none in [
            &[][..],
            &["unknown"],
            &[""],
            &["10.0.0.7,"],
            &["1.2.3.4", "x"],
        ] {
            assert_eq!(of(none), None, "{none:?}");
        }
    }
}
