//! The learned baselines of all GPUs, which are kept in a file over restarts.
//!
//! The file is small and not essential: gpumon continues without it if it is damaged, or on a disk
//! that does not answer.

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
    safe_file::{Folder, Owner, invalid},
};

/// The version of the format. Other versions are not read.
const VERSION: u32 = 1;

/// The maximum size of the file in bytes, more than the baselines of all GPUs need.
const MOST_BYTES: usize = 4 << 20;

/// The maximum number of GPUs, more than a machine has. The oldest are removed.
const MOST_GPUS: usize = 256;

/// The maximum time to wait for the file.
const READ_WITHIN: Duration = Duration::from_secs(1);

/// The learned baselines by UUID.
pub struct Learned {
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
    /// The time of the latest change.
    at_ms: u64,
    baseline: Baseline,
}

impl Learned {
    /// Reads the file, which may be missing. If it cannot be used, returns the reason, and starts
    /// without baselines.
    pub fn read(path: PathBuf) -> (Self, Option<String>) {
        let (sender, content) = mpsc::channel();
        let file = path.clone();
        // The file is read in a separate thread, because the disk may never answer.
        thread::spawn(move || sender.send(read(&file)));
        let content = content
            .recv_timeout(READ_WITHIN)
            .unwrap_or_else(|_| Err("the disk does not answer".to_owned()));
        let (gpus, problem) = match content {
            Ok(gpus) => (gpus, None),
            Err(cause) => {
                let file = path.display();
                (
                    BTreeMap::new(),
                    Some(format!(
                        "{file} is not used: {cause}; what is usual for each GPU is learned anew"
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
    pub(super) fn baseline(&self, uuid: &str) -> Option<Baseline> {
        self.gpus().get(uuid).map(|gpu| gpu.baseline.clone())
    }

    /// Stores the baseline of a GPU, unless it is empty.
    pub(super) fn keep(&self, uuid: &str, baseline: Baseline) {
        let mut gpus = self.gpus();
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
        while gpus.len() > MOST_GPUS {
            let oldest = gpus
                .iter()
                .min_by_key(|(_, gpu)| gpu.at_ms)
                .map(|(uuid, _)| uuid.clone());
            oldest.and_then(|uuid| gpus.remove(&uuid));
        }
        self.is_new.store(true, Ordering::Relaxed);
    }

    /// Replaces the file if the baselines have changed. Waits for the disk.
    ///
    /// # Errors
    /// Returns an error if the file cannot be written. The next call tries again.
    pub fn write(&self) -> io::Result<()> {
        if !self.is_new.swap(false, Ordering::Relaxed) {
            return Ok(());
        }
        let content = Content {
            version: VERSION,
            gpus: self.gpus().clone(),
        };
        let bytes = serde_json::to_vec(&content)?;
        let written = place(&self.path).and_then(|(folder, name)| folder.replace(name, &bytes));
        written
            .inspect_err(|_| self.is_new.store(true, Ordering::Relaxed))
            .map_err(|error| {
                io::Error::new(
                    error.kind(),
                    format!("cannot write {}: {error}", self.path.display()),
                )
            })
    }

    fn gpus(&self) -> MutexGuard<'_, BTreeMap<String, Gpu>> {
        self.gpus.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Learned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Learned")
            .field("path", &self.path)
            .finish_non_exhaustive()
    }
}

/// Returns the directory of a file and its name in it.
fn place(path: &Path) -> io::Result<(Folder, &str)> {
    let name = path
        .file_name()
        .and_then(OsStr::to_str)
        .ok_or_else(|| invalid("it names no file"))?;
    let folder = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty())
        .unwrap_or(Path::new("."));
    Ok((Folder::open(folder, Owner::Own)?, name))
}

fn read(path: &Path) -> Result<BTreeMap<String, Gpu>, String> {
    let bytes = place(path).and_then(|(folder, name)| folder.read(name, MOST_BYTES));
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
            "it is of version {version}, and {VERSION} is known"
        ));
    }
    if gpus.len() > MOST_GPUS {
        return Err(format!("it has more than {MOST_GPUS} GPUs"));
    }
    // Implausible baselines are removed, and the others are used.
    gpus.retain(|_, gpu| gpu.baseline.is_possible());
    Ok(gpus)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::derive::learned_baseline;

    fn read_again(path: &Path) -> (Learned, Option<String>) {
        Learned::read(path.to_owned())
    }

    #[test]
    fn what_was_learned_is_there_after_a_restart_and_only_what_is_new_is_written() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("learned.json");
        let (learned, problem) = read_again(&path);
        assert_eq!(problem, None, "there need be none");
        learned.keep("GPU-1", Baseline::default());
        learned.write().unwrap();
        assert!(!path.exists(), "nothing was learned");
        learned.keep("GPU-1", learned_baseline());
        learned.write().unwrap();
        let (again, problem) = read_again(&path);
        assert_eq!(
            (again.baseline("GPU-1"), again.baseline("GPU-2"), problem),
            (Some(learned_baseline()), None, None)
        );
        fs::remove_file(&path).unwrap();
        learned.keep("GPU-1", learned_baseline());
        learned.write().unwrap();
        assert!(!path.exists(), "nothing is new");
        assert_eq!(
            fs::read_dir(folder.path()).unwrap().count(),
            0,
            "nothing is left beside it"
        );
    }

    #[test]
    fn a_file_that_is_broken_or_too_large_or_tells_what_cannot_be_is_done_without() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("learned.json");
        let (learned, _) = read_again(&path);
        learned.keep("GPU-1", learned_baseline());
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
                problem.is_some_and(|said| said.contains("learned.json is not used")),
                "{bad}"
            );
            learned.keep("GPU-1", learned_baseline());
            learned.write().unwrap();
            assert!(read_again(&path).1.is_none(), "it is replaced");
        }
        fs::write(&path, good.replace("1980.0", "1e300")).unwrap();
        let (learned, problem) = read_again(&path);
        assert_eq!(
            (learned.baseline("GPU-1"), problem),
            (None, None),
            "no chip is as fast"
        );
        fs::write(&path, " ".repeat(MOST_BYTES + 1)).unwrap();
        assert!(
            read_again(&path)
                .1
                .unwrap()
                .contains("more than 4194304 bytes")
        );
        fs::remove_file(&path).unwrap();
        fs::create_dir(&path).unwrap();
        let (learned, problem) = read_again(&path);
        assert!(problem.unwrap().contains("it is not a regular file"));
        learned.keep("GPU-1", learned_baseline());
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
    fn of_boards_that_are_gone_the_oldest_are_forgotten() {
        let (learned, _) = read_again(Path::new("/nonexistent/learned.json"));
        for gpu in 0..MOST_GPUS + 10 {
            learned.keep(&format!("GPU-{gpu}"), learned_baseline());
        }
        assert_eq!(learned.gpus().len(), MOST_GPUS);
    }
}
