//! Which path leads where.

use std::sync::Arc;

use axum::{
    Json, Router,
    extract::State,
    http::{HeaderValue, StatusCode, header},
    middleware,
    response::{IntoResponse, Response},
    routing::get,
};
use gpumon_probe::model::now_ms;
use tower_http::{compression::CompressionLayer, set_header::SetResponseHeaderLayer};

use crate::{
    app::AppState,
    frame::{CollectorState, Snapshot},
    guard::{self, Access},
    page, stream,
};

pub(crate) fn router(state: AppState, access: Access) -> Router {
    Router::new()
        .route("/", get(page::index))
        .route("/{*path}", get(page::file))
        .route("/api/v1/snapshot", get(snapshot))
        .route("/healthz", get(healthz))
        .route("/readyz", get(readyz))
        .layer(CompressionLayer::new())
        // Outside the compression, which has no business with a WebSocket.
        .route("/api/v1/stream", get(stream::upgrade))
        .layer(SetResponseHeaderLayer::if_not_present(
            header::X_CONTENT_TYPE_OPTIONS,
            HeaderValue::from_static("nosniff"),
        ))
        .layer(middleware::from_fn_with_state(Arc::new(access), guard::check))
        .with_state(state)
}

/// Everything known now, from memory: it never waits for the driver.
async fn snapshot(State(app): State<AppState>) -> Json<Snapshot> {
    Json(app.hub.snapshot())
}

/// The server answers.
async fn healthz() -> &'static str {
    "ok\n"
}

/// Fresh samples are coming.
async fn readyz(State(app): State<AppState>) -> Response {
    let snapshot = app.hub.snapshot();
    let age_ms = |at_ms: u64| now_ms().saturating_sub(at_ms);
    match (&snapshot.sample, snapshot.collector.state) {
        (Some(sample), CollectorState::Running) if age_ms(sample.at_ms) < 5_000 + 3 * u64::from(sample.interval_ms) => {
            "ready\n".into_response()
        }
        (_, state) => {
            let message = snapshot.collector.message.unwrap_or_else(|| "no fresh sample".to_owned());
            (StatusCode::SERVICE_UNAVAILABLE, format!("{state:?}: {message}\n")).into_response()
        }
    }
}
