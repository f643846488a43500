//! The endpoint `/api/v1/replay`, which controls how the recording is played.

use axum::{
    Json, Router,
    body::Bytes,
    extract::{DefaultBodyLimit, Request, State},
    http::{Method, StatusCode},
    middleware::{self, Next},
    response::{IntoResponse, Response},
    routing::post,
};
use gpumon_probe::model::now_ms;

use super::{ReplayOrder, ReplayPosition, SPEED_LIMITS};
use crate::{
    app::AppState,
    refusal::{Refusal, bad_request},
    runs,
};

const REPLAY_PATH: &str = "/api/v1/replay";

/// The maximum size of a request in bytes.
const MAX_BODY_BYTES: usize = 4096;

pub(crate) fn build_router(app: &AppState) -> Router<AppState> {
    let may_run = middleware::from_fn_with_state(app.clone(), runs::require_run_permission);
    Router::new()
        .route(
            "/api/v1/replay",
            post(post_command).route_layer(may_run).get(get_position),
        )
        .route_layer(DefaultBodyLimit::max(MAX_BODY_BYTES))
}

async fn get_position(State(app): State<AppState>) -> Result<Json<ReplayPosition>, Refusal> {
    send_replay_command(&app, ReplayOrder::default()).await
}

async fn post_command(
    State(app): State<AppState>,
    body: Bytes,
) -> Result<Json<ReplayPosition>, Refusal> {
    let order = parse_command(&body).map_err(bad_request)?;
    send_replay_command(&app, order).await
}

async fn send_replay_command(
    app: &AppState,
    order: ReplayOrder,
) -> Result<Json<ReplayPosition>, Refusal> {
    let Some(replay) = &app.replay else {
        let message =
            "this server replays no recording: start one with `gpumon replay FILE --serve`\n"
                .to_owned();
        return Err((StatusCode::NOT_FOUND, message));
    };
    let gone = || {
        (
            StatusCode::SERVICE_UNAVAILABLE,
            "the replay has ended; restart the server\n".to_owned(),
        )
    };
    replay.send_command(order).await.map(Json).ok_or_else(gone)
}

fn parse_command(body: &[u8]) -> Result<ReplayOrder, String> {
    let order: ReplayOrder = serde_json::from_slice(body).map_err(|error| {
        format!(
            r#"invalid request: {error}; send {{"speed":10}}, {{"paused":true}} or {{"at_ms":{}}}"#,
            now_ms()
        )
    })?;
    if order
        .speed
        .is_some_and(|speed| !SPEED_LIMITS.contains(&speed))
    {
        let (slowest, fastest) = SPEED_LIMITS.into_inner();
        return Err(format!(
            "the speed is out of range; use {slowest} to {fastest} times real time"
        ));
    }
    Ok(order)
}

/// Refuses requests that would change something, because the server shows a recording and not the
/// current state.
pub(crate) async fn refuse_changes(
    State(app): State<AppState>,
    request: Request,
    next: Next,
) -> Response {
    let path = request.uri().path();
    let changes =
        request.method() != Method::GET && request.method() != Method::HEAD && path != REPLAY_PATH;
    let is_about_now = path.starts_with("/metrics") || path == "/api/v1/answers";
    if app.replay.is_some() && (changes || is_about_now) {
        let message =
            "this server replays a recording, which has no current data and cannot be changed\n";
        return (StatusCode::CONFLICT, message).into_response();
    }
    next.run(request).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_replay_commands_are_refused() {
        assert_eq!(
            parse_command(b"{\"speed\":10}"),
            Ok(ReplayOrder {
                speed: Some(10.0),
                ..ReplayOrder::default()
            })
        );
        assert_eq!(
            parse_command(b"{\"paused\":true}"),
            Ok(ReplayOrder {
                paused: Some(true),
                ..ReplayOrder::default()
            })
        );
        for (body, why) in [
            ("{\"speed\":0}", "0.1 to 1000"),
            ("{\"speed\":1e9}", "0.1 to 1000"),
            ("{\"at_ms\":-5}", "invalid request"),
            ("{\"seek\":1}", "send {\"speed\":10}"),
            ("", "send {\"speed\":10}"),
        ] {
            let error = parse_command(body.as_bytes()).unwrap_err();
            assert!(error.contains(why), "{body}: {error}");
        }
    }
}
