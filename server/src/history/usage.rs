//! Usage by owner in a span of time, from memory and disk.

use std::{ops::Range, sync::RwLock};

use gpumon_history::usage::{self, Remembered, Stored};
use gpumon_probe::usage::{Usage, UsageMeter};

use super::Past;
use crate::lock;

/// Returns the usage of the quarters of an hour that overlap a span. This reads the disk, without a
/// lock that others wait for.
pub(crate) fn usage(past: &RwLock<Past>, meter: &RwLock<UsageMeter>, span: &Range<u64>) -> Usage {
    let writer = lock::read(past).writer.clone();
    let memory = Remembered::of(&lock::read(meter));
    // Problems of the disk are reported by the endpoint of the history.
    let stored = writer.and_then(|writer| {
        let disk = writer.reader().ok().flatten()?;
        let stored = Stored::read(&disk, &memory, span);
        stored
            .inspect_err(|error| writer.reading_failed(&disk, error))
            .ok()
            .flatten()
    });
    usage::usage(memory, stored, span)
}
