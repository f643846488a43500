//! Which jobs were on which GPUs, from memory and disk.

use std::sync::RwLock;

use gpumon_history::jobs::{JobList, JobSpan, joined};

use super::Past;
use crate::lock;

/// All, or those that are called so. It reads the disk; meanwhile nothing waits for it.
pub(crate) fn jobs(past: &RwLock<Past>, called: Option<&str>) -> JobList {
    let (writer, known) = {
        let past = lock::read(past);
        let is_meant = |span: &&JobSpan| called.is_none_or(|text| span.is_called(text));
        let known: Vec<_> = past.buckets.jobs().filter(is_meant).cloned().collect();
        (past.writer.clone(), known)
    };
    // A disk that does not work is told of where the past itself is answered.
    let stored = writer.and_then(|writer| {
        let disk = writer.reader().ok().flatten()?;
        disk.jobs(called)
            .inspect_err(|error| writer.reading_failed(&disk, error))
            .ok()
    });
    let stored = stored.unwrap_or_default();
    // What is in memory is newer.
    JobList {
        jobs: joined(known, stored),
    }
}
