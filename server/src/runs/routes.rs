//! The endpoints `/api/v1/runs` and `/api/v1/catalogue`.

use std::sync::Arc;

use axum::{
    Extension, Json, Router,
    body::{Body, Bytes},
    extract::{DefaultBodyLimit, Path, State},
    http::{HeaderMap, StatusCode},
    middleware,
    response::{IntoResponse, Response},
    routing::{delete, get, post},
};
use futures_util::StreamExt;
use gpumon_probe::model::RunStatus;
use gpumon_workload::{
    parent::{LineSplitter, LineTooLong},
    protocol::{Job, ReportLine},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    Runs, access,
    catalogue::get_catalogue,
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
        post(post_announced_run).route_layer(middleware::from_fn(peer::require_change_permission)),
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

// The endpoint `POST /api/v1/runs/announced` for a run in a terminal. The request body consists of
// the run's report lines, sent as they appear.

/// The header that contains the name of the run. The client chooses the name.
pub(crate) const RUN_NAME_HEADER: &str = "x-gpumon-run";
/// The maximum size of all lines of a run in bytes, enough for days of progress.
const MAX_BODY_BYTES: usize = 64 << 20;
pub(crate) const MAX_NAME_BYTES: usize = 64;

/// Reads report lines until the body ends. A run that has not reported its end by then is recorded
/// as lost.
pub(super) async fn post_announced_run(
    State(app): State<AppState>,
    headers: HeaderMap,
    body: Body,
) -> Result<&'static str, Refusal> {
    let bad = |why: String| (StatusCode::BAD_REQUEST, why + "\n");
    let name = headers
        .get(RUN_NAME_HEADER)
        .and_then(|name| name.to_str().ok())
        .filter(|name| is_run_name(name));
    let name = name.ok_or_else(|| {
        bad(format!(
            "the header X-Gpumon-Run must contain the name of the run: up to {MAX_NAME_BYTES} \
             letters, digits, '-' and '_'"
        ))
    })?;
    app.runs.announce(name)?;
    let announcement = Announcement {
        runs: Arc::clone(&app.runs),
        name: name.to_owned(),
    };
    let mut chunks = body.into_data_stream();
    let (mut splitter, mut received) = (LineSplitter::default(), 0);
    // When the process in the terminal ends, its connection is closed, which ends this loop.
    while let Some(Ok(chunk)) = chunks.next().await {
        received += chunk.len();
        if received > MAX_BODY_BYTES {
            return Err(bad("this run has sent too much data".to_owned()));
        }
        announcement
            .ingest(&mut splitter, &chunk)
            .map_err(|RefusedLine(why)| bad(why))?;
        if app.runs.has_reported_its_end(name) {
            return Ok("ended\n");
        }
    }
    Err(bad("the connection ended before the run did".to_owned()))
}

fn is_run_name(name: &str) -> bool {
    let is_fit = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    (1..=MAX_NAME_BYTES).contains(&name.len()) && name.bytes().all(is_fit)
}

/// A guard that ends its run when dropped, even if the handler is canceled because the connection
/// was closed.
struct Announcement {
    runs: Arc<Runs>,
    name: String,
}

impl Announcement {
    fn ingest(&self, splitter: &mut LineSplitter, chunk: &Bytes) -> Result<(), RefusedLine> {
        splitter.push(chunk, |line| {
            if line.is_empty() {
                Ok(())
            } else {
                self.runs
                    .ingest(&self.name, ReportLine::parse(line))
                    .map_err(RefusedLine)
            }
        })
    }
}

struct RefusedLine(String);

impl From<LineTooLong> for RefusedLine {
    fn from(error: LineTooLong) -> Self {
        Self(error.to_string())
    }
}

impl Drop for Announcement {
    fn drop(&mut self) {
        let why = "the connection to its terminal ended before the run did".to_owned();
        self.runs.end_run(&self.name, RunStatus::Lost, Some(why));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn run_name_is_short_and_plain() {
        assert!(is_run_name("5f3a-1") && is_run_name(&"a".repeat(64)));
        for name in ["", "a b", "../etc", "ä", &"a".repeat(65)] {
            assert!(!is_run_name(name), "{name}");
        }
    }
}
