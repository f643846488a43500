//! The server's routes, and the middleware that runs before them.

use std::{sync::Arc, time::Duration};

use axum::{
    Router,
    extract::{Request, State},
    http::{HeaderName, HeaderValue, StatusCode, header},
    middleware::{self, Next},
    response::{IntoResponse, Response},
    routing::{get, post},
};
use gpumon_probe::model::{GpuSample, Health, Sample, join_meaning_and_advice, now_ms};
use tower_http::{set_header::SetResponseHeaderLayer, timeout::TimeoutLayer};

use crate::{
    alerts,
    app::AppState,
    auth::{self, AccessPolicy},
    client_events, connections, fleet,
    guard::{self, Access, Guard},
    history,
    listen::{Listener, PortPurpose},
    metrics, openapi, page, pause, peer, replay, runs, snapshot, stream, usage,
};

/// The time limit for a request including its body. Streams and announcements of runs in a terminal
/// have no time limit.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);

pub(crate) fn build_router(state: AppState, listener: &Listener) -> Router {
    let routes = match listener.purpose() {
        PortPurpose::Everything => all_routes(&state),
        PortPurpose::Metrics => metrics_routes(),
    };
    add_protection(routes, state, listener.access())
}

fn limit_request_time() -> TimeoutLayer {
    TimeoutLayer::with_status_code(StatusCode::REQUEST_TIMEOUT, REQUEST_TIMEOUT)
}

/// Returns the routes of a port that only serves Prometheus. All other routers include them too.
fn metrics_routes() -> Router<AppState> {
    Router::new()
        .route("/metrics", get(metrics::get_metrics))
        .route("/metrics/dcgm", get(metrics::get_dcgm))
        .route("/metrics/dcgm-4.9", get(metrics::get_dcgm_49))
        .route("/healthz", get(get_health))
        .route("/readyz", get(get_readiness))
        .layer(limit_request_time())
}

pub(crate) fn all_routes(state: &AppState) -> Router<AppState> {
    // The check is a layer of these methods only. A request with another method therefore still
    // receives a response that lists the allowed methods.
    let may_change = middleware::from_fn(peer::require_change_permission);
    let hosts = middleware::from_fn_with_state(state.clone(), fleet::hosts::routes::route_to_host);
    Router::new()
        .route(
            "/api/v1/pause",
            post(pause::pause).route_layer(may_change.clone()),
        )
        .route(
            "/api/v1/resume",
            post(pause::resume).route_layer(may_change),
        )
        .merge(auth::routes::build_router())
        .merge(runs::build_router(state))
        .merge(client_events::build_router(state))
        .merge(replay::routes::build_router(state))
        .merge(alerts::build_router())
        .merge(fleet::routes::build_router())
        .merge(fleet::nodes::routes::build_router().layer(hosts.clone()))
        .route("/", get(page::get_index))
        .route("/{*path}", get(page::get_file))
        .route("/api/v1/answers", get(snapshot::get_answers))
        .route("/api/v1/cost", get(usage::get_cost))
        .route("/api/v1/history", get(history::routes::get_history))
        .route("/api/v1/jobs", get(usage::get_jobs))
        .route("/api/v1/openapi.json", get(openapi::get_openapi))
        .route("/api/v1/snapshot", get(snapshot::get_snapshot))
        .route("/api/v1/usage", get(usage::get_usage))
        .layer(limit_request_time())
        .merge(metrics_routes())
        .merge(runs::build_announcement_router())
        .layer(middleware::from_fn_with_state(
            state.clone(),
            replay::routes::refuse_changes,
        ))
        .layer(middleware::from_fn_with_state(
            state.clone(),
            fleet::routes::refuse_changes,
        ))
        .route("/api/v1/stream", get(stream::upgrade_connection))
        .merge(fleet::nodes::routes::build_stream_router().layer(hosts))
}

/// Adds the middleware that decides which requests are allowed. The layer added last processes
/// requests first.
pub(crate) fn add_protection(routes: Router<AppState>, state: AppState, access: Access) -> Router {
    let policy = Arc::clone(&state.policy);
    let guard = Guard {
        access,
        live: state.live.clone(),
        policy: Arc::clone(&policy),
    };
    let checked = routes
        .layer(middleware::from_fn_with_state(
            Arc::clone(&policy),
            auth::authenticate_request,
        ))
        .layer(middleware::from_fn_with_state(guard, guard::check_origin))
        .layer(middleware::from_fn_with_state(
            Arc::clone(&policy),
            auth::limit_rate,
        ))
        .layer(middleware::from_fn_with_state(
            state.live.clone(),
            connections::replace_proxy_by_client,
        ));
    // These layers enclose the others. Refusals therefore have the headers too.
    DEFAULT_HEADERS
        .iter()
        .fold(checked, |inner, (name, value)| {
            inner.layer(SetResponseHeaderLayer::if_not_present(
                name.clone(),
                HeaderValue::from_static(value),
            ))
        })
        .layer(middleware::from_fn_with_state(
            policy,
            set_configured_headers,
        ))
        .with_state(state)
}

/// Sets the headers of the current web configuration. A content security policy is sent in addition
/// to the response's own. Browsers apply both, so the configured policy can only add restrictions.
async fn set_configured_headers(
    State(policy): State<Arc<AccessPolicy>>,
    request: Request,
    next: Next,
) -> Response {
    let mut response = next.run(request).await;
    let Some(web) = policy.web_config() else {
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

/// The default headers of every response. Browsers must not guess the response's type, store it,
/// run scripts in it, embed it in another page, or send the page's URL when a link is followed.
const DEFAULT_HEADERS: [(HeaderName, &str); 6] = [
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

async fn get_health() -> &'static str {
    "ok\n"
}

/// Describes the first GPU's problem if no GPU responds. A sleeping GPU counts as responding.
fn describe_unresponsive_gpu(sample: &Sample) -> Option<String> {
    let responds = |gpu: &GpuSample| matches!(gpu.health, Health::Ok | Health::Asleep { .. });
    let first = sample
        .gpus
        .first()
        .filter(|_| !sample.gpus.iter().any(responds))?;
    Some(match &first.health {
        Health::Failed {
            meaning, advice, ..
        } => join_meaning_and_advice(meaning, advice),
        health => format!("GPU {} is {}", first.index, health.json_name()),
    })
}

async fn get_readiness(State(app): State<AppState>) -> Response {
    let collector = app.hub.collector_status();
    if let Some(sample) = app.hub.fresh_sample(now_ms()) {
        if let Some(why) = describe_unresponsive_gpu(&sample) {
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
        "this server replays a recording"
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
