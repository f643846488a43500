//! Who used how much in a span of time, from memory and disk.

use std::{ops::Range, sync::RwLock};

use gpumon_history::usage::{self, Remembered, Stored};
use gpumon_probe::usage::{Usage, UsageMeter};

use super::Past;
use crate::lock;

/// In the quarters of an hour that the span touches, as far as they are known. It reads the disk;
/// meanwhile nothing waits for it.
pub(crate) fn usage(past: &RwLock<Past>, meter: &RwLock<UsageMeter>, span: &Range<u64>) -> Usage {
    let writer = lock::read(past).writer.clone();
    let memory = Remembered::of(&lock::read(meter));
    // A disk that does not work is told of where the past itself is answered.
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
