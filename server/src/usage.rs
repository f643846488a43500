//! `GET /api/v1/usage`: who used how much since the server's start.

use axum::{Extension, extract::State, http::HeaderMap, response::Response};

use crate::{
    app::AppState,
    auth::Client,
    respond::{JSON, Resource, respond, to_json},
    view::View,
};

/// From memory: it never waits for the driver.
pub(crate) async fn usage(
    State(app): State<AppState>,
    Extension(client): Extension<Client>,
    headers: HeaderMap,
) -> Response {
    let view = View::of(&client, app.show_processes).await;
    let of_view = view.clone();
    let write = move |hub: &crate::hub::Hub| to_json(&of_view.usage(hub.usage()));
    respond(&app, &headers, client.who(), view, Resource::Usage, JSON, write).await
}
