//! Clients of a reverse proxy: whoever connects is the proxy.

use axum::{
    extract::{Request, State},
    middleware::Next,
    response::Response,
};
use tokio::sync::watch;

use crate::{connections::Arrival, live::Live, peer::Peer};

/// Before everything else: also on a connection that was there before it became a proxy's, its user is not who asks.
pub(crate) async fn forget_proxy(
    State(live): State<watch::Receiver<Live>>,
    mut request: Request,
    next: Next,
) -> Response {
    if live.borrow().is_behind_proxy() {
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
