//! What a collector knows of the file, which others write.

use std::{
    collections::BTreeMap,
    fs, io,
    os::unix::fs::MetadataExt,
    path::Path,
    sync::{Arc, Mutex, PoisonError},
};

use super::{BelowBaseline, file};

/// The GPUs whose latest results are below their baselines. Readings take it as it is, and never wait for the disk.
#[derive(Debug, Default)]
pub struct BelowBaselines {
    latest: Mutex<Arc<BTreeMap<String, BelowBaseline>>>,
}

/// A file as it was; another time, size or inode is another one.
type Seen = Option<(i64, i64, u64, u64)>;

impl BelowBaselines {
    /// By UUID.
    pub(crate) fn get(&self) -> Arc<BTreeMap<String, BelowBaseline>> {
        Arc::clone(&self.latest.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Reads the file where it is another one than `seen`. It waits for the disk. `None` as `seen` is a file that is not
    /// there.
    ///
    /// # Errors
    /// Where it cannot be used, once for each file; nothing is below a baseline then.
    pub fn update(&self, path: &Path, seen: &mut Seen) -> io::Result<()> {
        let of =
            |found: &fs::Metadata| (found.mtime(), found.mtime_nsec(), found.size(), found.ino());
        let now = fs::metadata(path).ok().as_ref().map(of);
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
