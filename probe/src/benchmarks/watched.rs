//! The collector's view of the file, which other processes write.

use std::{
    collections::BTreeMap,
    io,
    path::Path,
    sync::{Arc, Mutex, PoisonError},
};

use super::{BelowBaseline, file};
use crate::file_stamp::FileStamp;

/// The GPUs with latest results below their baselines. Reading this value never waits for the disk.
#[derive(Debug, Default)]
pub struct BelowBaselines {
    latest: Mutex<Arc<BTreeMap<String, BelowBaseline>>>,
}

impl BelowBaselines {
    /// Returns the GPUs by UUID.
    pub(crate) fn get(&self) -> Arc<BTreeMap<String, BelowBaseline>> {
        Arc::clone(&self.latest.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Reads the file if its stamp differs from `seen`, where `None` is a missing file. Waits for
    /// the disk.
    ///
    /// # Errors
    /// Returns an error if the file cannot be used, once for each version of the file. No GPU is
    /// below its baseline then.
    pub fn update(&self, path: &Path, seen: &mut Option<FileStamp>) -> io::Result<()> {
        let now = FileStamp::read(path);
        if std::mem::replace(seen, now) == now {
            return Ok(());
        }
        let read = file::read(path);
        let below = read
            .as_ref()
            .map(super::Benchmarks::all_below_baseline)
            .unwrap_or_default();
        *self.latest.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(below);
        read.map(drop)
    }
}
