//! The endpoints `/api/v1/runs` and `/api/v1/catalogue`, including the endpoint for runs in
//! terminals, and the permission that they require.

use std::sync::Arc;

use axum::{
    Extension, Json, Router,
    body::{Body, Bytes},
    extract::{DefaultBodyLimit, Path, Request, State},
    http::{HeaderMap, StatusCode},
    middleware::{self, Next},
    response::{IntoResponse, Response},
    routing::{delete, get, post},
};
use futures_util::StreamExt;
use gpumon_probe::model::RunStatus;
use gpumon_workload::{
    parent::{LineSplitter, LineTooLong},
    protocol::{Job, ReportLine},
};
use rustix::process::geteuid;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    Runs,
    catalogue::Catalogue,
    state::{RunDetails, RunState},
};
use crate::{
    app::AppState,
    audit,
    auth::Client,
    peer::{self, Peer},
    refusal::{Refusal, bad_request},
};

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
    let may_run = middleware::from_fn_with_state(app.clone(), require_run_permission);
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

/// Returns the router for announced runs, whose requests have no time limit.
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
) -> Result<(StatusCode, Json<Started>), Refusal> {
    let job = Job::parse(&body).map_err(|error| {
        let hint = r#"send one as {"kind":"bench","ids":["copy"],"quick":true}"#;
        bad_request(format!("invalid job: {error}; {hint}"))
    })?;
    let state = app.runs.start(&job)?;
    audit::log_action(
        &client,
        &format!("started run {}: {}", state.run, state.title),
    )
    .await;
    Ok((StatusCode::ACCEPTED, Json(Started { id: state.run })))
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

async fn get_catalogue(
    State(app): State<AppState>,
    Extension(client): Extension<Client>,
) -> Json<Catalogue> {
    let refusal = find_run_refusal(&app, &client).map(|why| why.trim_end().to_owned());
    Json(Catalogue::new(refusal))
}

// The permission to start and stop runs, set marks and control a replay. The server's own user and
// root have it, and everybody else if the settings allow it.

/// A header that pages of other origins cannot send without permission. This server never gives
/// that permission.
pub(crate) const GPUMON_HEADER: &str = "x-gpumon";
const MISSING_HEADER_MESSAGE: &str = "send the header `X-Gpumon: run` to start or stop a run, set a \
                                      mark or control a replay; the header shows that the request \
                                      is not from a page of another origin\n";

const MISSING_SCOPE_MESSAGE: &str = "starting and stopping runs, setting marks and controlling a \
                                     replay require a token with the scope run\n";

/// Returns `true` if the request has the header that pages of other origins cannot send.
pub(crate) fn has_gpumon_header(headers: &HeaderMap) -> bool {
    headers
        .get(GPUMON_HEADER)
        .is_some_and(|value| value == "run")
}

pub(crate) async fn require_run_permission(
    State(app): State<AppState>,
    Extension(client): Extension<Client>,
    request: Request,
    next: Next,
) -> Response {
    let refused = if has_gpumon_header(request.headers()) {
        find_run_refusal(&app, &client)
    } else {
        Some(MISSING_HEADER_MESSAGE)
    };
    match refused {
        None => next.run(request).await,
        Some(message) => (StatusCode::FORBIDDEN, message).into_response(),
    }
}

/// Returns the reason why this client may not start and stop runs, or `None` if the client has
/// permission.
pub(crate) fn find_run_refusal(app: &AppState, client: &Client) -> Option<&'static str> {
    match client.may_start_runs() {
        Some(true) => return None,
        Some(false) => return Some(MISSING_SCOPE_MESSAGE),
        None => {}
    }
    let method = match client.peer {
        Peer::Socket { .. } => AccessMethod::Socket,
        Peer::Port { .. } if app.live.borrow().runs_for_all => return None,
        Peer::Port { .. } if app.live.borrow().is_behind_proxy() => AccessMethod::Proxy,
        Peer::Port { .. } => AccessMethod::Port,
    };
    find_user_refusal(client.peer.uid(), geteuid().as_raw(), method)
}

/// The way in which a client reaches the server.
#[derive(Debug, Clone, Copy)]
enum AccessMethod {
    Socket,
    Port,
    /// The port, if the server is behind a reverse proxy. Clients that connect to the port directly
    /// are included.
    Proxy,
}

fn find_user_refusal(uid: Option<u32>, own: u32, method: AccessMethod) -> Option<&'static str> {
    if uid.is_some_and(|uid| uid == own || uid == 0) {
        return None;
    }
    Some(match method {
        AccessMethod::Socket => {
            "only the user who started this server, or root, may start and stop runs, set marks \
             and control a replay\n"
        }
        AccessMethod::Port => {
            "only the user who started this server may start and stop runs, set marks and control \
             a replay over its port: start it with `gpumon serve --allow-runs` to allow this for \
             everybody who can reach the port\n"
        }
        AccessMethod::Proxy => {
            "this server is behind a reverse proxy and cannot identify who starts or stops a run, \
             sets a mark or controls a replay: start it with `gpumon serve --allow-runs` to allow \
             this for everybody who can reach the proxy\n"
        }
    })
}

// The endpoint for a run in a terminal. The request body consists of the run's report lines, sent
// as they appear.

/// The header that contains the name of the run. The client chooses the name.
pub(crate) const RUN_NAME_HEADER: &str = "x-gpumon-run";
/// The maximum size of all lines of a run in bytes, enough for days of progress.
const MAX_ANNOUNCEMENT_BYTES: usize = 64 << 20;
pub(crate) const MAX_RUN_NAME_BYTES: usize = 64;

/// Reads report lines until the body ends. A run that has not reported its end by then is recorded
/// as lost.
async fn post_announced_run(
    State(app): State<AppState>,
    headers: HeaderMap,
    body: Body,
) -> Result<&'static str, Refusal> {
    let name = headers
        .get(RUN_NAME_HEADER)
        .and_then(|name| name.to_str().ok())
        .filter(|name| is_run_name(name));
    let name = name.ok_or_else(|| {
        bad_request(format!(
            "the header X-Gpumon-Run must contain the name of the run: up to {MAX_RUN_NAME_BYTES} \
             letters, digits, '-' and '_'"
        ))
    })?;
    app.runs.announce_run(name)?;
    let announcement = Announcement {
        runs: Arc::clone(&app.runs),
        name: name.to_owned(),
    };
    let mut chunks = body.into_data_stream();
    let (mut splitter, mut received) = (LineSplitter::default(), 0);
    // If the process in the terminal ends, its connection is closed. This ends the loop.
    while let Some(Ok(chunk)) = chunks.next().await {
        received += chunk.len();
        if received > MAX_ANNOUNCEMENT_BYTES {
            return Err(bad_request("this run has sent too much data".to_owned()));
        }
        announcement
            .process_chunk(&mut splitter, &chunk)
            .map_err(|RefusedLine(why)| bad_request(why))?;
        if app.runs.has_reported_its_end(name) {
            return Ok("ended\n");
        }
    }
    Err(bad_request(
        "the connection ended before the run did".to_owned(),
    ))
}

fn is_run_name(name: &str) -> bool {
    let is_fit = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    (1..=MAX_RUN_NAME_BYTES).contains(&name.len()) && name.bytes().all(is_fit)
}

/// A guard that ends its run when dropped, even if the handler is canceled because the connection
/// was closed.
struct Announcement {
    runs: Arc<Runs>,
    name: String,
}

impl Announcement {
    fn process_chunk(&self, splitter: &mut LineSplitter, chunk: &Bytes) -> Result<(), RefusedLine> {
        splitter.push(chunk, |line| {
            if line.is_empty() {
                Ok(())
            } else {
                self.runs
                    .process_report(&self.name, ReportLine::parse(line))
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
    fn run_name_with_special_characters_is_refused() {
        assert!(is_run_name("5f3a-1") && is_run_name(&"a".repeat(64)));
        for name in ["", "a b", "../etc", "ä", &"a".repeat(65)] {
            assert!(!is_run_name(name), "{name}");
        }
    }

    #[test]
    fn only_server_user_may_run_without_permission() {
        let of = |uid, method| find_user_refusal(uid, 1000, method);
        assert_eq!(
            [
                of(Some(1000), AccessMethod::Port),
                of(Some(0), AccessMethod::Port),
                of(Some(1000), AccessMethod::Socket)
            ],
            [None; 3]
        );
        for uid in [Some(1001), None] {
            assert!(
                of(uid, AccessMethod::Port)
                    .unwrap()
                    .contains("--allow-runs")
            );
            assert!(of(uid, AccessMethod::Socket).unwrap().contains("or root"));
        }
        let behind_proxy = of(None, AccessMethod::Proxy).unwrap();
        assert!(
            behind_proxy.contains("behind a reverse proxy and cannot identify who")
                && behind_proxy.contains(": start it with `gpumon serve --allow-runs`")
                && behind_proxy.contains("who can reach the proxy"),
            "{behind_proxy}"
        );
    }
}
