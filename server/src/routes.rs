//! The routes of the server, and the middleware before them.

use std::{sync::Arc, time::Duration};

use axum::{
    Router,
    extract::{Request, State},
    http::{HeaderName, HeaderValue, StatusCode, header},
    middleware::{self, Next},
    response::{IntoResponse, Response},
    routing::{get, post},
};
use gpumon_probe::model::{GpuSample, Health, Sample, now_ms, with_advice};
use tower_http::{set_header::SetResponseHeaderLayer, timeout::TimeoutLayer};

use crate::{
    alerts, answers,
    app::AppState,
    auth::{self, Doors},
    behind_proxy, cells, costs, fleet,
    guard::{self, Access, Guard},
    jobs,
    listen::{Listener, Purpose},
    marks, metrics, openapi, page, past, pause, peer, replay, runs, snapshot, stream, usage,
};

/// The time limit of a request with its body. Streams, and the messages of a run in a terminal,
/// have none.
const LONGEST_REQUEST: Duration = Duration::from_secs(30);

pub(crate) fn router(state: AppState, listener: &Listener) -> Router {
    let routes = match listener.purpose() {
        Purpose::Everything => everything(&state),
        Purpose::Metrics => metrics(),
    };
    protected(routes, state, listener.access())
}

/// Returns the routes of a port for Prometheus only, which are also part of all others.
fn metrics() -> Router<AppState> {
    Router::new()
        .route("/metrics", get(metrics::metrics))
        .route("/metrics/dcgm", get(metrics::dcgm))
        .route("/metrics/dcgm-4.9", get(metrics::dcgm_49))
        .route("/healthz", get(healthz))
        .route("/readyz", get(readyz))
        .layer(TimeoutLayer::with_status_code(
            StatusCode::REQUEST_TIMEOUT,
            LONGEST_REQUEST,
        ))
}

pub(crate) fn everything(state: &AppState) -> Router<AppState> {
    // This applies only to these methods, so that other methods get a response that lists the
    // allowed ones.
    let may_change = middleware::from_fn(peer::may_change);
    let hosts = middleware::from_fn_with_state(state.clone(), fleet::hosts::nested::route);
    Router::new()
        .route(
            "/api/v1/pause",
            post(pause::pause).route_layer(may_change.clone()),
        )
        .route(
            "/api/v1/resume",
            post(pause::resume).route_layer(may_change),
        )
        .merge(auth::routes::router())
        .merge(runs::router(state))
        .merge(marks::router(state))
        .merge(cells::router(state))
        .merge(replay::routes::router(state))
        .merge(alerts::router())
        .merge(fleet::routes::router())
        .merge(fleet::nodes::routes::router().layer(hosts.clone()))
        .route("/", get(page::index))
        .route("/{*path}", get(page::file))
        .route("/api/v1/answers", get(answers::answers))
        .route("/api/v1/cost", get(costs::answer_cost))
        .route("/api/v1/history", get(past::history))
        .route("/api/v1/jobs", get(jobs::jobs))
        .route("/api/v1/openapi.json", get(openapi::openapi))
        .route("/api/v1/snapshot", get(snapshot::snapshot))
        .route("/api/v1/usage", get(usage::usage))
        .layer(TimeoutLayer::with_status_code(
            StatusCode::REQUEST_TIMEOUT,
            LONGEST_REQUEST,
        ))
        .merge(metrics())
        .merge(runs::announcements())
        .layer(middleware::from_fn_with_state(
            state.clone(),
            replay::routes::refuse_changes,
        ))
        .layer(middleware::from_fn_with_state(
            state.clone(),
            fleet::routes::refuse_changes,
        ))
        .route("/api/v1/stream", get(stream::upgrade))
        .merge(fleet::nodes::routes::streams().layer(hosts))
}

/// Adds the middleware that decides which requests are allowed. The last layer is the first to
/// process a request.
pub(crate) fn protected(routes: Router<AppState>, state: AppState, access: Access) -> Router {
    let doors = Arc::clone(&state.doors);
    let guard = Guard {
        access,
        live: state.live.clone(),
        doors: Arc::clone(&doors),
    };
    let checked = routes
        .layer(middleware::from_fn_with_state(
            Arc::clone(&doors),
            auth::check,
        ))
        .layer(middleware::from_fn_with_state(guard, guard::check))
        .layer(middleware::from_fn_with_state(
            Arc::clone(&doors),
            auth::limit,
        ))
        .layer(middleware::from_fn_with_state(
            state.live.clone(),
            behind_proxy::find_client,
        ));
    // These layers are outside of the others, so that refusals have the headers as well.
    HEADERS
        .iter()
        .fold(checked, |inner, (name, value)| {
            inner.layer(SetResponseHeaderLayer::if_not_present(
                name.clone(),
                HeaderValue::from_static(value),
            ))
        })
        .layer(middleware::from_fn_with_state(doors, configured_headers))
        .with_state(state)
}

/// Sets the headers of the web configuration, which can change. A content security policy is added
/// to that of the response: browsers apply both, so that this can only make it stricter.
async fn configured_headers(
    State(doors): State<Arc<Doors>>,
    request: Request,
    next: Next,
) -> Response {
    let mut response = next.run(request).await;
    let Some(web) = doors.web() else {
        return response;
    };
    for (name, value) in web.headers.iter().cloned() {
        if name == header::CONTENT_SECURITY_POLICY {
            response.headers_mut().append(name, value);
        } else {
            response.headers_mut().insert(name, value);
        }
    }
    response
}

/// The default headers of every response: browsers must not guess its type, store it, run scripts
/// in it, embed it in a page, or send the URL of the page with links.
const HEADERS: [(HeaderName, &str); 6] = [
    (
        header::CONTENT_SECURITY_POLICY,
        "default-src 'none'; frame-ancestors 'none'; sandbox",
    ),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::CACHE_CONTROL, "no-store"),
    (header::REFERRER_POLICY, "no-referrer"),
    (
        HeaderName::from_static("cross-origin-resource-policy"),
        "same-origin",
    ),
    (
        HeaderName::from_static("cross-origin-opener-policy"),
        "same-origin",
    ),
];

async fn healthz() -> &'static str {
    "ok\n"
}

/// Describes the first GPU if no GPU responds. A sleeping GPU counts as one that responds.
fn no_gpu_responds(sample: &Sample) -> Option<String> {
    let responds = |gpu: &GpuSample| matches!(gpu.health, Health::Ok | Health::Asleep { .. });
    let first = sample
        .gpus
        .first()
        .filter(|_| !sample.gpus.iter().any(responds))?;
    Some(match &first.health {
        Health::Failed {
            meaning, advice, ..
        } => with_advice(meaning, advice),
        health => format!("GPU {} is {}", first.index, health.word()),
    })
}

async fn readyz(State(app): State<AppState>) -> Response {
    let collector = app.hub.collector();
    if let Some(sample) = app.hub.fresh_sample(now_ms()) {
        if let Some(why) = no_gpu_responds(&sample) {
            return (
                StatusCode::SERVICE_UNAVAILABLE,
                format!("no GPU responds: {why}\n"),
            )
                .into_response();
        }
        let joined = collector
            .joined
            .map(|socket| format!("joined the server at {socket}\n"));
        return format!("ready\n{}", joined.unwrap_or_default()).into_response();
    }
    if !app.reads_gpus {
        return "ready\n".into_response();
    }
    let none = if app.replay.is_some() {
        "a recording is replayed"
    } else {
        "no fresh sample"
    };
    let message = collector.message.unwrap_or_else(|| none.to_owned());
    (
        StatusCode::SERVICE_UNAVAILABLE,
        format!("{:?}: {message}\n", collector.state),
    )
        .into_response()
}
