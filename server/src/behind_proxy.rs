//! Clients of a reverse proxy: whoever connects is the proxy. A server of a fleet is one, which passes on what its viewers
//! ask, and says so.

use axum::{
    extract::{Request, State},
    http::{HeaderName, header},
    middleware::Next,
    response::Response,
};
use tokio::sync::watch;

use crate::{connections::Arrival, live::Live, peer::Peer};

/// What a server of a fleet says with all that it passes on to a node (RFC 9110, section 7.6.3).
pub(crate) const VIA: HeaderName = header::VIA;
pub(crate) const PASSED_ON: &str = "1.1 gpumon-fleet";

/// Before everything else: also on a connection that was there before it became a proxy's, its user is not who asks.
pub(crate) async fn forget_proxy(
    State(live): State<watch::Receiver<Live>>,
    mut request: Request,
    next: Next,
) -> Response {
    let is_passed_on = request.headers().get_all(VIA).iter().any(|by| by == PASSED_ON);
    if is_passed_on || live.borrow().is_behind_proxy() {
        let known = request.extensions_mut();
        if let Some(arrival) = known.get_mut::<Arrival>() {
            arrival.peer = arrival.peer.behind_proxy();
        }
        if let Some(peer) = known.get_mut::<Peer>() {
            *peer = peer.behind_proxy();
        }
    }
    next.run(request).await
}
