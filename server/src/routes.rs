//! Which path leads where.

use axum::{
    Router,
    extract::State,
    http::{HeaderValue, StatusCode, header},
    middleware,
    response::{IntoResponse, Response},
    routing::{get, post},
};
use gpumon_probe::model::now_ms;
use tower_http::{compression::CompressionLayer, set_header::SetResponseHeaderLayer};

use crate::{
    answers,
    app::AppState,
    guard::{self, Access},
    metrics, page, pause, peer, runs,
    snapshot::{self, Parts},
    stream,
};

pub(crate) fn router(state: AppState, access: Access) -> Router {
    let changing = Router::new()
        .route("/api/v1/pause", post(pause::pause))
        .route("/api/v1/resume", post(pause::resume))
        .route_layer(middleware::from_fn(peer::may_change));
    Router::new()
        .merge(changing)
        .merge(runs::router(&state))
        .route("/", get(page::index))
        .route("/{*path}", get(page::file))
        .route("/api/v1/answers", get(answers::answers))
        .route("/api/v1/snapshot", get(snapshot::snapshot))
        .route("/metrics", get(metrics::metrics))
        .route("/metrics/dcgm", get(metrics::dcgm))
        .route("/healthz", get(healthz))
        .route("/readyz", get(readyz))
        .layer(CompressionLayer::new())
        // Outside the compression, which has no business with a WebSocket.
        .route("/api/v1/stream", get(stream::upgrade))
        .layer(SetResponseHeaderLayer::if_not_present(
            header::X_CONTENT_TYPE_OPTIONS,
            HeaderValue::from_static("nosniff"),
        ))
        .layer(middleware::from_fn_with_state(access, guard::check))
        .with_state(state)
}

/// The server answers.
async fn healthz() -> &'static str {
    "ok\n"
}

/// Fresh samples are coming.
async fn readyz(State(app): State<AppState>) -> Response {
    let snapshot = app.hub.snapshot(&Parts::default());
    if snapshot.fresh_sample(now_ms()).is_some() {
        return "ready\n".into_response();
    }
    let state = snapshot.collector.state;
    let message = snapshot.collector.message.unwrap_or_else(|| "no fresh sample".to_owned());
    (StatusCode::SERVICE_UNAVAILABLE, format!("{state:?}: {message}\n")).into_response()
}
