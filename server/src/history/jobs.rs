//! Jobs and their GPUs, from memory and disk.

use std::sync::RwLock;

use gpumon_history::jobs::{JobList, JobSpan, joined};

use super::Past;
use crate::lock;

/// Returns all jobs, or those with this name. This reads the disk, without a lock that others wait
/// for.
pub(crate) fn jobs(past: &RwLock<Past>, called: Option<&str>) -> JobList {
    let (writer, known) = {
        let past = lock::read(past);
        let is_meant = |span: &&JobSpan| called.is_none_or(|text| span.is_called(text));
        let known: Vec<_> = past.buckets.jobs().filter(is_meant).cloned().collect();
        (past.writer.clone(), known)
    };
    // Problems of the disk are reported by the endpoint of the history.
    let stored = writer.and_then(|writer| {
        let disk = writer.reader().ok().flatten()?;
        disk.jobs(called)
            .inspect_err(|error| writer.reading_failed(&disk, error))
            .ok()
    });
    let stored = stored.unwrap_or_default();
    // The jobs in memory are newer, so they come first.
    JobList {
        jobs: joined(known, stored),
    }
}
