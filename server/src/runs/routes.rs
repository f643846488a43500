//! `/api/v1/runs` and `/api/v1/catalogue`.

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
    catalogue::catalogue,
    external_runs,
    registry::Refusal,
    state::{RunDetails, RunState},
};
use crate::{app::AppState, audit, auth::Client, peer};

/// A job names a few workloads.
const LARGEST_JOB: usize = 64 * 1024;

/// `GET /api/v1/runs`: the newest first.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct RunList {
    /// All known runs, the newest first.
    runs: Vec<RunState>,
}

/// What is answered where a run was started.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Started {
    /// The name of the run.
    id: String,
}

pub(crate) fn router(app: &AppState) -> Router<AppState> {
    let may_run = middleware::from_fn_with_state(app.clone(), access::may_run);
    Router::new()
        .route(
            "/api/v1/runs",
            post(start).route_layer(may_run.clone()).get(list),
        )
        .route(
            "/api/v1/runs/{run}",
            delete(cancel).route_layer(may_run).get(details),
        )
        .route_layer(DefaultBodyLimit::max(LARGEST_JOB))
        .route("/api/v1/catalogue", get(catalogue))
}

/// Where terminals announce their runs, for as long as those go on.
pub(crate) fn announcements() -> Router<AppState> {
    Router::new().route(
        "/api/v1/runs/announced",
        post(external_runs::announced).route_layer(middleware::from_fn(peer::may_change)),
    )
}

async fn start(
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
            audit::note(
                &client,
                &format!("started run {}: {}", state.run, state.title),
            )
            .await;
            (StatusCode::ACCEPTED, Json(Started { id: state.run })).into_response()
        }
        Err(refusal) => refusal.into_response(),
    }
}

async fn list(State(app): State<AppState>) -> Json<RunList> {
    Json(RunList {
        runs: app.runs.all(),
    })
}

async fn details(
    State(app): State<AppState>,
    Path(run): Path<String>,
) -> Result<Json<RunDetails>, Refusal> {
    app.runs.details(&run).map(Json).ok_or_else(unknown)
}

/// Answers at once; the run ends when its process has given its memory back.
async fn cancel(
    State(app): State<AppState>,
    Extension(client): Extension<Client>,
    Path(run): Path<String>,
) -> Result<Json<RunState>, Refusal> {
    let state = app.runs.cancel(&run).ok_or_else(unknown)?;
    if state.own {
        audit::note(
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

fn unknown() -> Refusal {
    (
        StatusCode::NOT_FOUND,
        "there is no such run; /api/v1/runs lists those that are known\n".to_owned(),
    )
}
