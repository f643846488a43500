//! The past, as a running server answers it.

use std::ops::Range;

use anyhow::{Context as _, anyhow};
use gpumon_history::span::HistorySpan;

use crate::{exit::Failure, local::ServerArgs};

/// The most points that a server answers at once.
pub(crate) const MOST_POINTS: u64 = 5000;

/// What a server knows of a span, of these metrics.
///
/// # Errors
/// Where there is no server, or it refuses.
pub(crate) fn ask(
    server: &ServerArgs,
    span: &Range<u64>,
    metrics: &[&str],
    points: u64,
) -> Result<HistorySpan, Failure> {
    let server = server.connect().map_err(anyhow::Error::from)?;
    let at = server.path.display().to_string();
    let (from, to, metrics) = (span.start, span.end, metrics.join(","));
    let target = format!("/api/v1/history?from_ms={from}&to_ms={to}&points={points}&metrics={metrics}");
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
