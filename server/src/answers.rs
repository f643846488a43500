//! The endpoint `GET /api/v1/answers`, which returns what the driver returned to the collector.

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
    respond::{JSON_TYPE, Resource, respond_with_resource, to_json},
    view::View,
};

/// Returns the driver's answers at the newest sample from the hub, without calling the driver.
pub(crate) async fn get_answers(
    State(app): State<AppState>,
    Extension(client): Extension<Client>,
    headers: HeaderMap,
) -> Response {
    let view = View::for_client(&client, app.show_processes).await;
    if !view.shows_other_users() {
        let message = "the driver's responses contain the processes of all users, but this server \
                       shows each client only the client's own processes\n";
        return (StatusCode::FORBIDDEN, message).into_response();
    }
    app.watching.record_request();
    app.hub.update_answers().await;
    respond_with_resource(
        &app,
        &headers,
        client.peer_key(),
        view,
        Resource::Answers,
        JSON_TYPE,
        move |hub| {
            let theirs = hub
                .joined_socket()
                .and_then(|socket| ask::fetch_body(&socket, "/api/v1/answers").ok());
            theirs.map_or_else(|| to_json(&hub.answers()), String::into_bytes)
        },
    )
    .await
}
