//! The endpoint `POST /api/v1/runs/announced` for a run in a terminal. The request body consists of
//! the run's report lines, sent as they appear.

use std::sync::Arc;

use axum::{
    body::{Body, Bytes},
    extract::State,
    http::{HeaderMap, StatusCode},
};
use futures_util::StreamExt;
use gpumon_probe::model::RunStatus;
use gpumon_workload::{
    parent::line_splitter::{LineSplitter, LineTooLong},
    protocol::ReportLine,
};

use super::{Runs, registry::Refusal};
use crate::app::AppState;

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
