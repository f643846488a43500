//! The past, as a running server answers it, or as it is on disk.

use std::{ops::Range, path::PathBuf};

use anyhow::{Context as _, anyhow};
use gpumon_history::{
    database::{Database, FILE},
    plan::{POINTS, SpanRequest},
    span::HistorySpan,
    wanted::Wanted,
};
use gpumon_probe::untrusted::escaped;

use crate::{exit::Failure, local::ServerArgs};

/// Where history is; the same for every command that reads it.
#[derive(Debug, clap::Args)]
pub(crate) struct PastArgs {
    #[command(flatten)]
    server: ServerArgs,

    /// Read history from this directory of `gpumon serve --data-dir`, instead of asking the running server
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
}

impl PastArgs {
    /// What is known of a span, up to its end: in points of a time, or in as many as there may be.
    ///
    /// # Errors
    /// Where there is no server, or it refuses, or the directory has no history.
    pub(crate) fn ask(
        &self,
        span: &Range<u64>,
        metrics: &[&str],
        resolution_ms: Option<u64>,
    ) -> Result<HistorySpan, Failure> {
        let request = SpanRequest {
            from_ms: span.start,
            // The last moment that belongs to it.
            to_ms: span.end.saturating_sub(1).max(span.start + 1),
            points: *POINTS.end(),
            resolution_ms,
            wanted: Wanted::named(metrics.iter().copied()).0,
        };
        let Some(folder) = &self.data_dir else { return ask_server(&self.server, &request) };
        let database = Database::open_to_read(folder).and_then(|database| database.span(&request));
        let place = escaped(&folder.join(FILE).display().to_string());
        database.with_context(|| format!("cannot read {place}")).map_err(Failure::from)
    }

    /// What to do where nothing is known of a time.
    pub(crate) fn cure(&self) -> &'static str {
        if self.data_dir.is_some() {
            "name another directory, or leave --data-dir out to ask the running server"
        } else {
            "`gpumon serve --data-dir DIR` keeps history for longer"
        }
    }
}

/// The most points that are answered at once.
pub(crate) fn most_points() -> u64 {
    u64::from(*POINTS.end())
}

fn ask_server(server: &ServerArgs, request: &SpanRequest) -> Result<HistorySpan, Failure> {
    let server = server.connect().map_err(anyhow::Error::from)?;
    let at = server.path.display().to_string();
    let SpanRequest { from_ms, to_ms, points, .. } = request;
    let metrics = request.wanted.ids().join(",");
    let resolution = request.resolution_ms.map_or(String::new(), |asked_ms| format!("&resolution_ms={asked_ms}"));
    let target =
        format!("/api/v1/history?from_ms={from_ms}&to_ms={to_ms}&points={points}{resolution}&metrics={metrics}");
    let answer =
        server.ask("GET", &target).with_context(|| format!("the server at {at} does not answer; restart it"))?;
    match answer.status {
        200 => serde_json::from_str(&answer.body)
            .with_context(|| format!("the server at {at} is of another version; restart it"))
            .map_err(Failure::from),
        404 => Err(anyhow!("the server at {at} is older than this gpumon and answers no history; restart it").into()),
        _ => Err(anyhow!("the server at {at} refuses: {}", answer.body.trim()).into()),
    }
}
