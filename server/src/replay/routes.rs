//! The endpoint `/api/v1/replay`, which controls the recording.

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

use super::{Order, Position, SPEEDS};
use crate::{app::AppState, runs};

const PATH: &str = "/api/v1/replay";

/// The maximum size of a request in bytes.
const LARGEST: usize = 4096;

pub(crate) fn router(app: &AppState) -> Router<AppState> {
    let may_run = middleware::from_fn_with_state(app.clone(), runs::may_run);
    Router::new()
        .route(
            "/api/v1/replay",
            post(steer).route_layer(may_run).get(position),
        )
        .route_layer(DefaultBodyLimit::max(LARGEST))
}

type Refusal = (StatusCode, String);

async fn position(State(app): State<AppState>) -> Result<Json<Position>, Refusal> {
    answer(&app, Order::default()).await
}

async fn steer(State(app): State<AppState>, body: Bytes) -> Result<Json<Position>, Refusal> {
    let order = read(&body).map_err(|why| (StatusCode::BAD_REQUEST, why + "\n"))?;
    answer(&app, order).await
}

async fn answer(app: &AppState, order: Order) -> Result<Json<Position>, Refusal> {
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
    replay.order(order).await.map(Json).ok_or_else(gone)
}

fn read(body: &[u8]) -> Result<Order, String> {
    let order: Order = serde_json::from_slice(body).map_err(|error| {
        format!(
            r#"invalid request: {error}; send {{"speed":10}}, {{"paused":true}} or {{"at_ms":{}}}"#,
            now_ms()
        )
    })?;
    if order.speed.is_some_and(|speed| !SPEEDS.contains(&speed)) {
        let (slowest, fastest) = SPEEDS.into_inner();
        return Err(format!(
            "no such speed; ask for {slowest} to {fastest} times the real one"
        ));
    }
    Ok(order)
}

/// Refuses requests that would change something, because a recording is not the present.
pub(crate) async fn refuse_changes(
    State(app): State<AppState>,
    request: Request,
    next: Next,
) -> Response {
    let path = request.uri().path();
    let changes =
        request.method() != Method::GET && request.method() != Method::HEAD && path != PATH;
    let is_about_now = path.starts_with("/metrics") || path == "/api/v1/answers";
    if app.replay.is_some() && (changes || is_about_now) {
        let message =
            "this server replays a recording, which tells nothing of now and cannot be changed\n";
        return (StatusCode::CONFLICT, message).into_response();
    }
    next.run(request).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_are_checked() {
        assert_eq!(
            read(b"{\"speed\":10}"),
            Ok(Order {
                speed: Some(10.0),
                ..Order::default()
            })
        );
        assert_eq!(
            read(b"{\"paused\":true}"),
            Ok(Order {
                paused: Some(true),
                ..Order::default()
            })
        );
        for (body, why) in [
            ("{\"speed\":0}", "0.1 to 1000"),
            ("{\"speed\":1e9}", "0.1 to 1000"),
            ("{\"at_ms\":-5}", "invalid request"),
            ("{\"seek\":1}", "send {\"speed\":10}"),
            ("", "send {\"speed\":10}"),
        ] {
            let error = read(body.as_bytes()).unwrap_err();
            assert!(error.contains(why), "{body}: {error}");
        }
    }
}
