//! `GET /api/v1/answers`: the driver's answers to the collector.

use axum::{Extension, extract::State, http::HeaderMap, response::Response};

use crate::{
    app::AppState,
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
    respond(&app, &headers, peer.who(), view, Resource::Answers, JSON, move |hub| to_json(&hub.answers())).await
}
