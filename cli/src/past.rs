//! History from a running server or from a data directory.

use std::{
    ops::Range,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, anyhow};
use gpumon_history::{
    database::{Database, DatabaseError, FILE},
    jobs::{JobList, JobSpan},
    plan::{POINTS, SpanRequest},
    span::HistorySpan,
    usage::{self, Remembered, Stored},
    wanted::Wanted,
};
use gpumon_probe::{model::now_ms, untrusted::escaped};
use percent_encoding::{NON_ALPHANUMERIC, percent_encode};
use serde::de::DeserializeOwned;

use crate::{
    exit::{Failure, Result},
    local::ServerArgs,
};

/// The source of history; the same for every command that reads history.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct PastArgs {
    #[command(flatten)]
    server: ServerArgs,

    /// Read history from this directory of `gpumon serve --data-dir`, instead of asking the running
    /// server
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
}

impl PastArgs {
    /// Returns the arguments for the server to ask.
    pub(crate) fn server(&self) -> &ServerArgs {
        &self.server
    }

    /// Returns `true` if history is read from a data directory and not from a server.
    pub(crate) fn is_read_from_disk(&self) -> bool {
        self.data_dir.is_some()
    }

    /// Returns the history of a span. Without a resolution, the result has as many points as
    /// allowed.
    ///
    /// # Errors
    /// Returns an error if no server is running, the server refuses, or the directory has no
    /// history.
    pub(crate) fn ask(
        &self,
        span: &Range<u64>,
        metrics: &[&str],
        resolution_ms: Option<u64>,
    ) -> Result<HistorySpan> {
        let request = SpanRequest {
            from_ms: span.start,
            // The end of a request is inclusive, unlike that of `span`.
            to_ms: span.end.saturating_sub(1).max(span.start + 1),
            points: *POINTS.end(),
            resolution_ms,
            wanted: Wanted::named(metrics.iter().copied()).0,
        };
        match &self.data_dir {
            None => {
                let target = format!("/api/v1/{}", request.target());
                from_server(&self.server, &target, "history")
            }
            Some(folder) => from_disk(folder, |database| database.span(&request)),
        }
    }

    /// Returns the jobs that used GPUs: all of them, or those with this ID.
    ///
    /// # Errors
    /// Returns the same errors as [`Self::ask`].
    pub(crate) fn list_jobs(&self, called: Option<&str>) -> Result<Vec<JobSpan>> {
        match &self.data_dir {
            None => {
                let id = called
                    .map(|id| format!("?id={}", percent_encode(id.as_bytes(), NON_ALPHANUMERIC)));
                let target = format!("/api/v1/jobs{}", id.unwrap_or_default());
                from_server::<JobList>(&self.server, &target, "jobs").map(|list| list.jobs)
            }
            Some(folder) => from_disk(folder, |database| database.jobs(called)),
        }
    }

    /// Returns the usage by owner as JSON. Without a span, a server returns usage since its start,
    /// and a directory all recorded usage.
    ///
    /// # Errors
    /// Returns the same errors as [`Self::ask`].
    pub(crate) fn usage(&self, span: Option<&Range<u64>>) -> Result<String> {
        let Some(folder) = &self.data_dir else {
            let span = span.map(|span| format!("?from_ms={}&to_ms={}", span.start, span.end));
            return fetch_body(
                &self.server,
                &format!("/api/v1/usage{}", span.unwrap_or_default()),
                "usage",
            );
        };
        let span = span.cloned().unwrap_or(0..now_ms());
        let nothing = Remembered::default();
        let stored = from_disk(folder, |database| Stored::read(database, &nothing, &span))?;
        if stored.is_none() {
            let folder = escaped(&folder.display().to_string());
            return Err(anyhow!(
                "no usage is recorded in {folder}; a server with this --data-dir records it"
            )
            .into());
        }
        let usage = usage::usage(nothing, stored, &span);
        Ok(serde_json::to_string(&usage).context("cannot write usage as JSON")?)
    }

    /// Returns a hint for users if no history is recorded for a time.
    pub(crate) fn cure(&self) -> &'static str {
        if self.data_dir.is_some() {
            "name another directory, or leave --data-dir out to ask the running server"
        } else {
            "`gpumon serve --data-dir DIR` keeps history for longer"
        }
    }
}

/// Returns the maximum number of points in one answer.
pub(crate) fn most_points() -> u64 {
    u64::from(*POINTS.end())
}

fn from_disk<T>(
    folder: &Path,
    read: impl FnOnce(&Database) -> Result<T, DatabaseError>,
) -> Result<T> {
    let read = Database::open_to_read(folder).and_then(|database| read(&database));
    let place = escaped(&folder.join(FILE).display().to_string());
    read.with_context(|| format!("cannot read {place}"))
        .map_err(Failure::from)
}

fn from_server<T: DeserializeOwned>(server: &ServerArgs, target: &str, what: &str) -> Result<T> {
    let body = fetch_body(server, target, what)?;
    serde_json::from_str(&body)
        .context("the server is of another version; restart it")
        .map_err(Failure::from)
}

fn fetch_body(server: &ServerArgs, target: &str, what: &str) -> Result<String> {
    let reply = server.request("GET", target, "", &format!("does not report {what}"))?;
    Ok(reply.body)
}
