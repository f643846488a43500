//! The learned baselines of all GPUs, which are stored in a file across restarts.
//!
//! The file is small and not essential: gpumon continues without it if it is damaged, or if the
//! disk does not respond.

use std::{
    collections::BTreeMap,
    ffi::OsStr,
    fmt, io,
    path::{Path, PathBuf},
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
        mpsc,
    },
    thread,
    time::Duration,
};

use serde::{Deserialize, Serialize};

use crate::{
    derive::Baseline,
    model::now_ms,
    safe_file::{AcceptedOwner, Folder, split_file_path},
};

/// The version of the file format. Files with other versions are not read.
const VERSION: u32 = 1;

/// The maximum size of the file in bytes, more than the baselines of all GPUs need.
const MAX_BYTES: usize = 4 << 20;

/// The maximum number of GPUs, more than any machine has. If there are more, the GPUs with the
/// oldest baselines are removed.
const MAX_GPUS: usize = 256;

/// The maximum time to wait until the file has been read.
const MAX_READ_TIME: Duration = Duration::from_secs(1);

/// The learned baselines of all GPUs, by UUID.
pub struct LearnedBaselines {
    path: PathBuf,
    gpus: Mutex<BTreeMap<String, Gpu>>,
    /// Whether the baselines have changed since the file was written.
    is_new: AtomicBool,
}

#[derive(Debug, Serialize, Deserialize)]
struct Content {
    version: u32,
    gpus: BTreeMap<String, Gpu>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Gpu {
    /// The time at which the baseline last changed.
    at_ms: u64,
    baseline: Baseline,
}

impl LearnedBaselines {
    /// Reads the file, which may be missing. If the file cannot be used, returns the reason and
    /// starts without baselines.
    pub fn read(path: PathBuf) -> (Self, Option<String>) {
        let (sender, content) = mpsc::channel();
        let file = path.clone();
        // The file is read in a separate thread, because the disk may never respond.
        thread::spawn(move || sender.send(read(&file)));
        let content = content
            .recv_timeout(MAX_READ_TIME)
            .unwrap_or_else(|_| Err("the disk does not respond".to_owned()));
        let (gpus, problem) = match content {
            Ok(gpus) => (gpus, None),
            Err(cause) => {
                let file = path.display();
                (
                    BTreeMap::new(),
                    Some(format!(
                        "{file} cannot be used: {cause}; the usual values of each GPU are learned \
                         again"
                    )),
                )
            }
        };
        (
            Self {
                path,
                gpus: Mutex::new(gpus),
                is_new: AtomicBool::new(false),
            },
            problem,
        )
    }

    /// Returns the learned baseline of a GPU.
    pub(super) fn find_baseline(&self, uuid: &str) -> Option<Baseline> {
        self.lock_gpus().get(uuid).map(|gpu| gpu.baseline.clone())
    }

    /// Stores the baseline of a GPU, unless it is empty.
    pub(super) fn store(&self, uuid: &str, baseline: Baseline) {
        let mut gpus = self.lock_gpus();
        if baseline.is_empty()
            || gpus
                .get(uuid)
                .is_some_and(|known| known.baseline == baseline)
        {
            return;
        }
        gpus.insert(
            uuid.to_owned(),
            Gpu {
                at_ms: now_ms(),
                baseline,
            },
        );
        while gpus.len() > MAX_GPUS {
            let oldest = gpus
                .iter()
                .min_by_key(|(_, gpu)| gpu.at_ms)
                .map(|(uuid, _)| uuid.clone());
            oldest.and_then(|uuid| gpus.remove(&uuid));
        }
        self.is_new.store(true, Ordering::Relaxed);
    }

    /// Replaces the file if the baselines have changed. This waits for the disk.
    ///
    /// # Errors
    /// Returns an error if the file cannot be written. The next call tries again.
    pub fn write(&self) -> io::Result<()> {
        if !self.is_new.swap(false, Ordering::Relaxed) {
            return Ok(());
        }
        let content = Content {
            version: VERSION,
            gpus: self.lock_gpus().clone(),
        };
        let bytes = serde_json::to_vec(&content)?;
        let written =
            open_folder(&self.path).and_then(|(folder, name)| folder.replace(name, &bytes));
        written
            .inspect_err(|_| self.is_new.store(true, Ordering::Relaxed))
            .map_err(|error| {
                io::Error::new(
                    error.kind(),
                    format!("cannot write {}: {error}", self.path.display()),
                )
            })
    }

    fn lock_gpus(&self) -> MutexGuard<'_, BTreeMap<String, Gpu>> {
        self.gpus.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for LearnedBaselines {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Learned")
            .field("path", &self.path)
            .finish_non_exhaustive()
    }
}

/// Opens the directory of a file. Returns the directory, and the file's name in the directory.
fn open_folder(path: &Path) -> io::Result<(Folder, &OsStr)> {
    let (folder, name) = split_file_path(path)?;
    Ok((Folder::open(folder, AcceptedOwner::Own)?, name))
}

fn read(path: &Path) -> Result<BTreeMap<String, Gpu>, String> {
    let bytes = open_folder(path).and_then(|(folder, name)| folder.read(name, MAX_BYTES));
    let bytes = match bytes {
        Ok(Some(bytes)) => bytes,
        Ok(None) => return Ok(BTreeMap::new()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(BTreeMap::new()),
        Err(error) => return Err(error.to_string()),
    };
    let Content { version, mut gpus } =
        serde_json::from_slice(&bytes).map_err(|error| error.to_string())?;
    if version != VERSION {
        return Err(format!(
            "the file has format version {version}, but this gpumon supports version {VERSION}"
        ));
    }
    if gpus.len() > MAX_GPUS {
        return Err(format!("the file has more than {MAX_GPUS} GPUs"));
    }
    // Only implausible baselines are removed. The other baselines in the file are used.
    gpus.retain(|_, gpu| gpu.baseline.is_plausible());
    Ok(gpus)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::derive::make_learned_baseline;

    fn read_again(path: &Path) -> (LearnedBaselines, Option<String>) {
        LearnedBaselines::read(path.to_owned())
    }

    #[test]
    fn baselines_survive_restart() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("learned.json");
        let (learned, problem) = read_again(&path);
        assert_eq!(problem, None, "there need be none");
        learned.store("GPU-1", Baseline::default());
        learned.write().unwrap();
        assert!(!path.exists(), "nothing was learned");
        learned.store("GPU-1", make_learned_baseline());
        learned.write().unwrap();
        let (again, problem) = read_again(&path);
        assert_eq!(
            (
                again.find_baseline("GPU-1"),
                again.find_baseline("GPU-2"),
                problem
            ),
            (Some(make_learned_baseline()), None, None)
        );
        fs::remove_file(&path).unwrap();
        learned.store("GPU-1", make_learned_baseline());
        learned.write().unwrap();
        assert!(!path.exists(), "nothing is new");
        assert_eq!(
            fs::read_dir(folder.path()).unwrap().count(),
            0,
            "nothing is left beside it"
        );
    }

    #[test]
    fn invalid_file_is_ignored() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("learned.json");
        let (learned, _) = read_again(&path);
        learned.store("GPU-1", make_learned_baseline());
        learned.write().unwrap();
        let good = fs::read_to_string(&path).unwrap();
        for bad in [
            "",
            "{}",
            "[1]",
            &good[..good.len() / 2],
            &good.replace("\"version\":1", "\"version\":2"),
        ] {
            fs::write(&path, bad).unwrap();
            let (learned, problem) = read_again(&path);
            assert!(
                problem.is_some_and(|said| said.contains("learned.json cannot be used")),
                "{bad}"
            );
            learned.store("GPU-1", make_learned_baseline());
            learned.write().unwrap();
            assert!(read_again(&path).1.is_none(), "it is replaced");
        }
        fs::write(&path, good.replace("1980.0", "1e300")).unwrap();
        let (learned, problem) = read_again(&path);
        assert_eq!(
            (learned.find_baseline("GPU-1"), problem),
            (None, None),
            "no chip is as fast"
        );
        fs::write(&path, " ".repeat(MAX_BYTES + 1)).unwrap();
        assert!(
            read_again(&path)
                .1
                .unwrap()
                .contains("more than 4194304 bytes")
        );
        fs::remove_file(&path).unwrap();
        fs::create_dir(&path).unwrap();
        let (learned, problem) = read_again(&path);
        assert!(problem.unwrap().contains("not a regular file"));
        learned.store("GPU-1", make_learned_baseline());
        let error = learned.write().unwrap_err().to_string();
        assert!(
            error.starts_with("cannot write ") && error.contains("learned.json"),
            "{error}"
        );
        assert_eq!(
            fs::read_dir(folder.path()).unwrap().count(),
            1,
            "nothing is left beside it"
        );
    }

    #[test]
    fn oldest_gpus_are_removed() {
        let (learned, _) = read_again(Path::new("/nonexistent/learned.json"));
        for gpu in 0..MAX_GPUS + 10 {
            learned.store(&format!("GPU-{gpu}"), make_learned_baseline());
        }
        assert_eq!(learned.lock_gpus().len(), MAX_GPUS);
    }
}
