//! `GET /api/v1/usage`: who used how much since the server's start.

use axum::{Extension, extract::State, http::HeaderMap, response::Response};

use crate::{
    app::AppState,
    peer::Peer,
    respond::{JSON, Resource, respond, to_json},
    view::View,
};

/// From memory: it never waits for the driver.
pub(crate) async fn usage(
    State(app): State<AppState>,
    Extension(peer): Extension<Peer>,
    headers: HeaderMap,
) -> Response {
    let view = View::of(peer).await;
    let write = move |hub: &crate::hub::Hub| to_json(&view.usage(hub.usage()));
    respond(&app, &headers, peer.who(), view, Resource::Usage, JSON, write).await
}
