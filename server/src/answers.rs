//! `GET /api/v1/answers`: the driver's answers to the collector.

use axum::{Extension, extract::State, http::HeaderMap, response::Response};

use crate::{
    app::AppState,
    join::ask,
    peer::Peer,
    respond::{JSON, Resource, respond, to_json},
    view::View,
};

/// From the collector's memory: it never waits for the driver.
pub(crate) async fn answers(
    State(app): State<AppState>,
    Extension(peer): Extension<Peer>,
    headers: HeaderMap,
) -> Response {
    let view = View::of(peer).await;
    app.hub.update_answers().await;
    respond(&app, &headers, peer.who(), view, Resource::Answers, JSON, move |hub| {
        let theirs = hub.joined().and_then(|socket| ask::get(&socket, "/api/v1/answers").ok());
        theirs.unwrap_or_else(|| to_json(&hub.answers()))
    })
    .await
}
