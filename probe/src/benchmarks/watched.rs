//! What a collector knows of the file, which others write.

use std::{
    collections::BTreeMap,
    io,
    path::Path,
    sync::{Arc, Mutex, PoisonError},
};

use super::{BelowBaseline, file};
use crate::file_stamp::FileStamp;

/// The GPUs whose latest results are below their baselines. Readings take it as it is, and never
/// wait for the disk.
#[derive(Debug, Default)]
pub struct BelowBaselines {
    latest: Mutex<Arc<BTreeMap<String, BelowBaseline>>>,
}

impl BelowBaselines {
    /// By UUID.
    pub(crate) fn get(&self) -> Arc<BTreeMap<String, BelowBaseline>> {
        Arc::clone(&self.latest.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Reads the file where it is another one than `seen`. It waits for the disk. `None` as `seen`
    /// is a file that is not there.
    ///
    /// # Errors
    /// Where it cannot be used, once for each file; nothing is below a baseline then.
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
