//! Jobs and their GPUs, from memory and from disk.

use std::sync::RwLock;

use gpumon_history::jobs::{JobList, JobSpan, merge_jobs};

use super::HistoryStore;
use crate::lock;

/// Returns all jobs, or only the jobs named `called`. The disk is read without holding the lock.
pub(crate) fn list_jobs(past: &RwLock<HistoryStore>, called: Option<&str>) -> JobList {
    let (writer, known) = {
        let past = lock::read(past);
        let is_meant = |span: &&JobSpan| called.is_none_or(|text| span.has_name(text));
        let known: Vec<_> = past.buckets.jobs().filter(is_meant).cloned().collect();
        (past.writer.clone(), known)
    };
    // Errors of the disk are reported by the history endpoint.
    let stored = writer.and_then(|writer| {
        let disk = writer.open_reader().ok().flatten()?;
        disk.read_jobs(called)
            .inspect_err(|error| writer.report_read_error(&disk, error))
            .ok()
    });
    let stored = stored.unwrap_or_default();
    // `merge_jobs` prefers its first argument, and the jobs in memory are newer.
    JobList {
        jobs: merge_jobs(known, stored),
    }
}
