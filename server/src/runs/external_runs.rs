//! The endpoint `POST /api/v1/runs/announced` for a run in a terminal. The request body has the
//! run's report lines as they appear.

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
    protocol::Line,
};

use super::{Runs, registry::Refusal};
use crate::app::AppState;

/// The header with the name of the run, which the client chooses.
pub(crate) const HEADER: &str = "x-gpumon-run";
/// The maximum size of all lines of a run in bytes, which is enough for days of progress.
const MOST: usize = 64 << 20;
pub(crate) const LONGEST_NAME: usize = 64;

/// Reads report lines until the body ends. A run that has not reported its end by then is marked as
/// lost.
pub(super) async fn announced(
    State(app): State<AppState>,
    headers: HeaderMap,
    body: Body,
) -> Result<&'static str, Refusal> {
    let bad = |why: String| (StatusCode::BAD_REQUEST, why + "\n");
    let name = headers
        .get(HEADER)
        .and_then(|name| name.to_str().ok())
        .filter(|name| is_name(name));
    let name = name.ok_or_else(|| {
        bad(format!("name the run in the header X-Gpumon-Run: up to {LONGEST_NAME} letters, digits, '-' and '_'"))
    })?;
    app.runs.announce(name)?;
    let announcement = Announcement {
        runs: Arc::clone(&app.runs),
        name: name.to_owned(),
    };
    let mut chunks = body.into_data_stream();
    let (mut splitter, mut received) = (LineSplitter::default(), 0);
    // The connection is closed when the terminal's process ends.
    while let Some(Ok(chunk)) = chunks.next().await {
        received += chunk.len();
        if received > MOST {
            return Err(bad("this run has said too much".to_owned()));
        }
        announcement
            .ingest(&mut splitter, &chunk)
            .map_err(|Refused(why)| bad(why))?;
        if app.runs.has_reported_its_end(name) {
            return Ok("ended\n");
        }
    }
    Err(bad("the lines ended before the run did".to_owned()))
}

fn is_name(name: &str) -> bool {
    let is_fit = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    (1..=LONGEST_NAME).contains(&name.len()) && name.bytes().all(is_fit)
}

/// A guard that ends its run when it is dropped, even if the connection was closed and the handler
/// is canceled.
struct Announcement {
    runs: Arc<Runs>,
    name: String,
}

impl Announcement {
    fn ingest(&self, splitter: &mut LineSplitter, chunk: &Bytes) -> Result<(), Refused> {
        splitter.push(chunk, |line| {
            if line.is_empty() {
                Ok(())
            } else {
                self.runs
                    .ingest(&self.name, Line::parse(line))
                    .map_err(Refused)
            }
        })
    }
}

struct Refused(String);

impl From<LineTooLong> for Refused {
    fn from(error: LineTooLong) -> Self {
        Self(error.to_string())
    }
}

impl Drop for Announcement {
    fn drop(&mut self) {
        let why = "its terminal fell silent before the run had ended".to_owned();
        self.runs.end(&self.name, RunStatus::Lost, Some(why));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_short_and_plain() {
        assert!(is_name("5f3a-1") && is_name(&"a".repeat(64)));
        for name in ["", "a b", "../etc", "ä", &"a".repeat(65)] {
            assert!(!is_name(name), "{name}");
        }
    }
}
