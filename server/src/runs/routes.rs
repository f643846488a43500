//! The endpoints `/api/v1/runs` and `/api/v1/catalogue`.

use axum::{
    Extension, Json, Router,
    body::Bytes,
    extract::{DefaultBodyLimit, Path, State},
    http::StatusCode,
    middleware,
    response::{IntoResponse, Response},
    routing::{delete, get, post},
};
use gpumon_workload::protocol::Job;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    access,
    catalogue::get_catalogue,
    external_runs,
    registry::Refusal,
    state::{RunDetails, RunState},
};
use crate::{app::AppState, audit, auth::Client, peer};

/// The maximum size of a job in bytes, enough for the names of all workloads.
const MAX_JOB_BYTES: usize = 64 * 1024;

/// The response of `GET /api/v1/runs`: all known runs.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct RunList {
    /// All known runs, newest first.
    runs: Vec<RunState>,
}

/// The response to the start of a run.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Started {
    /// The ID of the new run.
    id: String,
}

pub(crate) fn build_router(app: &AppState) -> Router<AppState> {
    let may_run = middleware::from_fn_with_state(app.clone(), access::require_run_permission);
    Router::new()
        .route(
            "/api/v1/runs",
            post(post_run).route_layer(may_run.clone()).get(list_runs),
        )
        .route(
            "/api/v1/runs/{run}",
            delete(cancel_run).route_layer(may_run).get(get_details),
        )
        .route_layer(DefaultBodyLimit::max(MAX_JOB_BYTES))
        .route("/api/v1/catalogue", get(get_catalogue))
}

/// Returns the router of the route for announced runs, which has no time limit.
pub(crate) fn build_announcement_router() -> Router<AppState> {
    Router::new().route(
        "/api/v1/runs/announced",
        post(external_runs::post_announced_run)
            .route_layer(middleware::from_fn(peer::require_change_permission)),
    )
}

async fn post_run(
    State(app): State<AppState>,
    Extension(client): Extension<Client>,
    body: Bytes,
) -> Response {
    let job = match Job::parse(&body) {
        Ok(job) => job,
        Err(error) => {
            let hint = r#"send one as {"kind":"bench","ids":["copy"],"quick":true}"#;
            return (
                StatusCode::BAD_REQUEST,
                format!("invalid job: {error}; {hint}\n"),
            )
                .into_response();
        }
    };
    match app.runs.start(&job) {
        Ok(state) => {
            audit::log_action(
                &client,
                &format!("started run {}: {}", state.run, state.title),
            )
            .await;
            (StatusCode::ACCEPTED, Json(Started { id: state.run })).into_response()
        }
        Err(refusal) => refusal.into_response(),
    }
}

async fn list_runs(State(app): State<AppState>) -> Json<RunList> {
    Json(RunList {
        runs: app.runs.list_states(),
    })
}

async fn get_details(
    State(app): State<AppState>,
    Path(run): Path<String>,
) -> Result<Json<RunDetails>, Refusal> {
    app.runs
        .find_details(&run)
        .map(Json)
        .ok_or_else(unknown_run_refusal)
}

/// Requests the end of a run without waiting for it. The run ends after its process has released
/// its memory.
async fn cancel_run(
    State(app): State<AppState>,
    Extension(client): Extension<Client>,
    Path(run): Path<String>,
) -> Result<Json<RunState>, Refusal> {
    let state = app.runs.cancel(&run).ok_or_else(unknown_run_refusal)?;
    if state.own {
        audit::log_action(
            &client,
            &format!("canceled run {}: {}", state.run, state.title),
        )
        .await;
        return Ok(Json(state));
    }
    Err((
        StatusCode::CONFLICT,
        "this run was started in a terminal: end it there, with Ctrl-C\n".to_owned(),
    ))
}

fn unknown_run_refusal() -> Refusal {
    (
        StatusCode::NOT_FOUND,
        "there is no such run; /api/v1/runs lists all known runs\n".to_owned(),
    )
}
