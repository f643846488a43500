//! Usage by owner in a time span, from memory and from disk.

use std::{ops::Range, sync::RwLock};

use gpumon_history::usage::{self, StoredUsage, UsageInMemory};
use gpumon_probe::usage::{Usage, UsageMeter};

use super::HistoryStore;
use crate::lock;

/// Returns the usage of all quarters of an hour that overlap a span. The disk is read without
/// holding the lock.
pub(crate) fn read_usage(
    past: &RwLock<HistoryStore>,
    meter: &RwLock<UsageMeter>,
    span: &Range<u64>,
) -> Usage {
    let writer = lock::read(past).writer.clone();
    let memory = UsageInMemory::from_meter(&lock::read(meter));
    // Errors of the disk are reported by the history endpoint.
    let stored = writer.and_then(|writer| {
        let disk = writer.open_reader().ok().flatten()?;
        let stored = StoredUsage::read(&disk, &memory, span);
        stored
            .inspect_err(|error| writer.report_read_error(&disk, error))
            .ok()
            .flatten()
    });
    usage::combine_usage(memory, stored, span)
}
