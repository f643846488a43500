//! Which path leads where.

use std::{sync::Arc, time::Duration};

use axum::{
    Router,
    extract::State,
    http::{HeaderName, HeaderValue, StatusCode, header},
    middleware,
    response::{IntoResponse, Response},
    routing::{get, post},
};
use gpumon_probe::model::now_ms;
use tower_http::{set_header::SetResponseHeaderLayer, timeout::TimeoutLayer};

use crate::{
    alerts, answers,
    app::AppState,
    cells,
    guard::{self, Access},
    jobs, marks, metrics, page, past, pause, peer, replay, runs, snapshot, stream, usage,
};

/// How long a request may take, its body included. What a terminal announces of a run, and streams, take as long as they
/// last.
const LONGEST_REQUEST: Duration = Duration::from_secs(30);

pub(crate) fn router(state: AppState, access: Access) -> Router {
    let changing = Router::new()
        .route("/api/v1/pause", post(pause::pause))
        .route("/api/v1/resume", post(pause::resume))
        .route_layer(middleware::from_fn(peer::may_change));
    let router = Router::new()
        .merge(changing)
        .merge(runs::router(&state))
        .merge(marks::router(&state))
        .merge(cells::router(&state))
        .merge(replay::routes::router(&state))
        .merge(alerts::router())
        .route("/", get(page::index))
        .route("/{*path}", get(page::file))
        .route("/api/v1/answers", get(answers::answers))
        .route("/api/v1/history", get(past::history))
        .route("/api/v1/jobs", get(jobs::jobs))
        .route("/api/v1/snapshot", get(snapshot::snapshot))
        .route("/api/v1/usage", get(usage::usage))
        .route("/metrics", get(metrics::metrics))
        .route("/metrics/dcgm", get(metrics::dcgm))
        .route("/healthz", get(healthz))
        .route("/readyz", get(readyz))
        .layer(TimeoutLayer::with_status_code(StatusCode::REQUEST_TIMEOUT, LONGEST_REQUEST))
        .merge(runs::announcements())
        .layer(middleware::from_fn_with_state(state.clone(), replay::routes::refuse_changes))
        .route("/api/v1/stream", get(stream::upgrade))
        .layer(middleware::from_fn_with_state((access, Arc::clone(&state.public_origins)), guard::check));
    // Outside the guard, so that a refusal has them, too.
    HEADERS
        .iter()
        .fold(router, |router, (name, value)| {
            router.layer(SetResponseHeaderLayer::if_not_present(name.clone(), HeaderValue::from_static(value)))
        })
        .with_state(state)
}

/// What stands in every answer unless the answer says otherwise: nobody guesses what it is, keeps it, embeds it in a page
/// of another origin, or learns from where a link was followed.
const HEADERS: [(HeaderName, &str); 5] = [
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::CACHE_CONTROL, "no-store"),
    (header::REFERRER_POLICY, "no-referrer"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
];

async fn healthz() -> &'static str {
    "ok\n"
}

async fn readyz(State(app): State<AppState>) -> Response {
    let collector = app.hub.collector();
    if app.hub.is_fresh(now_ms()) {
        return "ready\n".into_response();
    }
    let none = if app.replay.is_some() { "a recording is replayed" } else { "no fresh sample" };
    let message = collector.message.unwrap_or_else(|| none.to_owned());
    (StatusCode::SERVICE_UNAVAILABLE, format!("{:?}: {message}\n", collector.state)).into_response()
}
