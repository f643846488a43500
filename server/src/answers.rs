//! The endpoint `GET /api/v1/answers`: the driver's answers to the collector.

use axum::{
    Extension,
    extract::State,
    http::{HeaderMap, StatusCode},
    response::{IntoResponse, Response},
};

use crate::{
    app::AppState,
    auth::Client,
    join::ask,
    respond::{JSON, Resource, respond, to_json},
    view::View,
};

/// Returns the answers in the collector's memory, without waiting for the driver.
pub(crate) async fn answers(
    State(app): State<AppState>,
    Extension(client): Extension<Client>,
    headers: HeaderMap,
) -> Response {
    let view = View::of(&client, app.show_processes).await;
    if !view.has_others() {
        let message = "the driver's answers tell of everybody's processes, and this server shows each client its own alone\n";
        return (StatusCode::FORBIDDEN, message).into_response();
    }
    app.watching.look();
    app.hub.update_answers().await;
    respond(
        &app,
        &headers,
        client.who(),
        view,
        Resource::Answers,
        JSON,
        move |hub| {
            let theirs = hub
                .joined()
                .and_then(|socket| ask::get(&socket, "/api/v1/answers").ok());
            theirs.map_or_else(|| to_json(&hub.answers()), String::into_bytes)
        },
    )
    .await
}
