//! The collector's view of the benchmark file, which other processes write.

use std::{
    collections::BTreeMap,
    io,
    path::Path,
    sync::{Arc, Mutex, PoisonError},
};

use super::{BelowBaseline, file};
use crate::file_stamp::FileStamp;

/// The GPUs that have a latest result below their baseline. Reading this value never waits for the
/// disk.
#[derive(Debug, Default)]
pub struct BelowBaselines {
    latest: Mutex<Arc<BTreeMap<String, BelowBaseline>>>,
}

impl BelowBaselines {
    /// Returns the GPUs that are below their baselines, by UUID.
    pub(crate) fn gpus_by_uuid(&self) -> Arc<BTreeMap<String, BelowBaseline>> {
        Arc::clone(&self.latest.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Reads the file if its stamp differs from `seen`, which is `None` for a missing file. This
    /// may wait for the disk.
    ///
    /// # Errors
    /// Returns an error if the file cannot be used, once for each version of the file. In that
    /// case, no GPU counts as below its baseline.
    pub fn update(&self, path: &Path, seen: &mut Option<FileStamp>) -> io::Result<()> {
        let now = FileStamp::read(path);
        if std::mem::replace(seen, now) == now {
            return Ok(());
        }
        let read = file::read(path);
        let below = read
            .as_ref()
            .map(super::Benchmarks::find_all_below_baseline)
            .unwrap_or_default();
        *self.latest.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(below);
        read.map(drop)
    }
}
