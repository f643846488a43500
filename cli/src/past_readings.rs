//! Access to past readings: history from a running server or a data directory, and recordings.

use std::{
    ops::Range,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, anyhow};
use gpumon_history::{
    database::{
        Database, DatabaseError, FILE_NAME,
        usage::{self, StoredUsage, UsageInMemory},
    },
    jobs::{JobList, JobSpan},
    span::{HistorySpan, MetricSelection, POINT_LIMITS, SpanRequest},
};
use gpumon_probe::{
    model::{Record, now_ms},
    untrusted::escape_untrusted,
};
use gpumon_recording::{RecordKind, Recording};
use percent_encoding::{NON_ALPHANUMERIC, percent_encode};
use serde::de::DeserializeOwned;

use crate::{
    exit::{Failure, Result, print_message, usage},
    local_server::ServerArgs,
    time_spans::TimeReference,
};

/// Options for the source of history; the same for every command that reads history.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct PastArgs {
    #[command(flatten)]
    server: ServerArgs,

    /// Read history from this directory of `gpumon serve --data-dir`, instead of from the running
    /// server
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
}

impl PastArgs {
    /// Returns the options for the server from which history is requested.
    pub(crate) fn server(&self) -> &ServerArgs {
        &self.server
    }

    /// Returns `true` if history is read from a data directory, rather than from a server.
    pub(crate) fn reads_from_disk(&self) -> bool {
        self.data_dir.is_some()
    }

    /// Returns the history of a span. Without a resolution, the result has the maximum number of
    /// points.
    ///
    /// # Errors
    /// Returns an error if no server is running, if the server refuses the request, or if the
    /// directory has no history.
    pub(crate) fn fetch_history(
        &self,
        span: &Range<u64>,
        metrics: &[&str],
        resolution_ms: Option<u64>,
    ) -> Result<HistorySpan> {
        let request = SpanRequest {
            from_ms: span.start,
            // The end of `span` is exclusive, but the end of a request is inclusive.
            to_ms: span.end.saturating_sub(1).max(span.start + 1),
            points: *POINT_LIMITS.end(),
            resolution_ms,
            wanted: MetricSelection::parse_names(metrics.iter().copied()).0,
        };
        match &self.data_dir {
            None => {
                let target = format!("/api/v1/{}", request.request_target());
                fetch_from_server(&self.server, &target, "history")
            }
            Some(folder) => read_from_disk(folder, |database| database.read_span(&request)),
        }
    }

    /// Returns the jobs that used GPUs: all jobs, or only the jobs with the ID or name `called`.
    ///
    /// # Errors
    /// Returns the same errors as [`Self::fetch_history`].
    pub(crate) fn list_jobs(&self, called: Option<&str>) -> Result<Vec<JobSpan>> {
        match &self.data_dir {
            None => {
                let id = called
                    .map(|id| format!("?id={}", percent_encode(id.as_bytes(), NON_ALPHANUMERIC)));
                let target = format!("/api/v1/jobs{}", id.unwrap_or_default());
                fetch_from_server::<JobList>(&self.server, &target, "jobs").map(|list| list.jobs)
            }
            Some(folder) => read_from_disk(folder, |database| database.read_jobs(called)),
        }
    }

    /// Returns the usage by owner as JSON. Without a span, a server returns the usage since its
    /// start, and a directory returns all recorded usage.
    ///
    /// # Errors
    /// Returns the same errors as [`Self::fetch_history`].
    pub(crate) fn fetch_usage(&self, span: Option<&Range<u64>>) -> Result<String> {
        let Some(folder) = &self.data_dir else {
            let span = span.map(|span| format!("?from_ms={}&to_ms={}", span.start, span.end));
            return fetch_body(
                &self.server,
                &format!("/api/v1/usage{}", span.unwrap_or_default()),
                "usage",
            );
        };
        let span = span.cloned().unwrap_or(0..now_ms());
        let nothing = UsageInMemory::default();
        let stored = read_from_disk(folder, |database| {
            StoredUsage::read(database, &nothing, &span)
        })?;
        if stored.is_none() {
            let folder = escape_untrusted(&folder.display().to_string());
            return Err(anyhow!(
                "no usage is recorded in {folder}; run `gpumon serve` with this --data-dir to \
                 record usage"
            )
            .into());
        }
        let usage = usage::combine_usage(nothing, stored, &span);
        Ok(serde_json::to_string(&usage).context("cannot write usage as JSON")?)
    }

    /// Returns advice for users if no history is recorded for a time.
    pub(crate) fn describe_missing_history_fix(&self) -> &'static str {
        if self.data_dir.is_some() {
            "choose another directory with --data-dir, or omit --data-dir to read from the running \
             server"
        } else {
            "run `gpumon serve --data-dir DIR` to keep history for longer"
        }
    }
}

/// Returns the maximum number of points in a response.
pub(crate) fn max_response_points() -> u64 {
    u64::from(*POINT_LIMITS.end())
}

fn read_from_disk<T>(
    folder: &Path,
    read: impl FnOnce(&Database) -> Result<T, DatabaseError>,
) -> Result<T> {
    let read = Database::open_to_read(folder).and_then(|database| read(&database));
    let place = escape_untrusted(&folder.join(FILE_NAME).display().to_string());
    read.with_context(|| format!("cannot read {place}"))
        .map_err(Failure::from)
}

fn fetch_from_server<T: DeserializeOwned>(
    server: &ServerArgs,
    target: &str,
    what: &str,
) -> Result<T> {
    let body = fetch_body(server, target, what)?;
    serde_json::from_str(&body)
        .context("the server runs a different version of gpumon; restart the server")
        .map_err(Failure::from)
}

fn fetch_body(server: &ServerArgs, target: &str, what: &str) -> Result<String> {
    let reply = server.request("GET", target, "", &format!("does not report {what}"))?;
    Ok(reply.body)
}

/// Calls `take` with each sample of a span, and with each inventory before the samples that belong
/// to it. Damaged parts of the recording are reported and skipped.
///
/// # Errors
/// Returns an error if the span has no sample, or if `take` returns an error.
pub(crate) fn for_each_sample(
    recording: &Recording,
    span: &Range<u64>,
    mut take: impl FnMut(Record) -> Result,
) -> Result {
    let blocks = recording.blocks_in_span(span);
    let mut count = 0_u64;
    if let Some(first) = blocks.first()
        && let Some(inventory) = recording.read_inventory_before(*first).unwrap_or_default()
    {
        take(decode_record(&inventory)?)?;
    }
    for block in blocks {
        let lines = match recording.read_block(block) {
            Ok(lines) => lines,
            Err(error) => {
                print_message(&format!("{error}; this part of the recording is skipped"));
                continue;
            }
        };
        for line in lines.lines() {
            let is_wanted = match line.kind {
                RecordKind::Inventory => true,
                RecordKind::Sample => span.contains(&line.at_ms),
                _ => false,
            };
            if is_wanted {
                count += u64::from(line.kind == RecordKind::Sample);
                take(decode_record(lines.text(line))?)?;
            }
        }
    }
    if count == 0 {
        let (first_ms, last_ms) = recording.first_and_last_sample_ms();
        let zone = TimeReference::from_recording((first_ms, last_ms)).zone;
        let [first, last] = [first_ms, last_ms].map(|ms| crate::time_spans::format_time(ms, &zone));
        return Err(usage!(
            "there is no sample in the requested time: the recording covers {first} to {last}"
        ));
    }
    Ok(())
}

fn decode_record(record: &str) -> Result<Record> {
    Record::decode(record)
        .context(
            "this version of gpumon cannot read the recording; use the version that recorded it",
        )
        .map_err(Failure::from)
}
