//! Locks on GPUs, in files shared by all users of the machine.
//!
//! A process that ends after finding a GPU writes the end of the reservation into the file, because
//! the program that will use the GPU has yet to start.

use std::{
    fs::{self, File},
    io,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context, anyhow};
use gpumon_probe::{
    model::now_ms,
    units::{Accepted, short_duration},
};
use rustix::io::{Errno, FdFlags, fcntl_setfd};

use crate::{
    exit::Failure,
    lock_file::{self, FOLDERS, Taken, open, write_note},
};

/// The maximum time for which a GPU stays reserved after the waiting process has ended.
const LONGEST_HOLD: Duration = Duration::from_hours(1);

/// The accepted reservation times.
pub(crate) const HOLD: Accepted<Duration> = Accepted::accept_durations(
    Duration::from_secs(1),
    LONGEST_HOLD,
    "a time from 1s to 1h, such as 30s or 5m",
);

#[derive(Debug, Clone)]
pub(crate) struct Locks {
    folder: PathBuf,
}

/// A GPU locked by this process.
#[derive(Debug)]
pub(super) struct Lock {
    path: PathBuf,
    file: File,
    /// The time of locking. The GPU's state may have changed since earlier readings.
    pub(super) since_ms: u64,
}

impl Locks {
    /// Opens the named folder, or else the one that all users share.
    pub(crate) fn new(named: Option<&Path>) -> Result<Self, Failure> {
        if let Some(folder) = named {
            let is_folder = fs::metadata(folder).is_ok_and(|found| found.is_dir());
            let what = || {
                anyhow!(
                    "{} is not a folder: create it, or omit --locks",
                    folder.display()
                )
            };
            return is_folder
                .then(|| Self {
                    folder: folder.to_owned(),
                })
                .ok_or_else(|| Failure::usage(what()));
        }
        let shared = lock_file::shared_folder().map(|folder| Self { folder });
        let why = || {
            anyhow!(
                "no folder for locks: neither {} is open to all users; name one with --locks",
                FOLDERS.join(" nor ")
            )
        };
        Ok(shared.with_context(why)?)
    }

    /// Returns the reason why the lock of the GPU with this UUID can never be taken, if there is
    /// one.
    pub(super) fn obstacle(&self, uuid: &str) -> Option<String> {
        let path = self.path(uuid);
        let error = open(&path).err().filter(is_lasting)?;
        let cure = "remove it, or name another folder with --locks";
        Some(format!(
            "its lock {} cannot be opened ({error}): {cure}",
            path.display()
        ))
    }

    /// Tries to lock the GPU with this UUID, without waiting.
    ///
    /// # Errors
    /// Returns the reason why the GPU cannot be taken at present.
    pub(super) fn take(&self, uuid: &str) -> Result<Lock, String> {
        let path = self.path(uuid);
        let taken = lock_file::take(&path);
        let taken = taken.map_err(|error| format!("lock {}: {error}", path.display()))?;
        let Taken::Mine(file, note) = taken else {
            return Err("taken".to_owned());
        };
        let since_ms = now_ms();
        match reserved_for(&note, since_ms) {
            Some(left) => Err(format!("reserved {}", short_duration(left))),
            None => Ok(Lock {
                path,
                file,
                since_ms,
            }),
        }
    }

    fn path(&self, uuid: &str) -> PathBuf {
        lock_file::path(&self.folder, "gpumon", uuid)
    }
}

impl Lock {
    /// Reserves the GPU for this long after the process has ended.
    pub(super) fn reserve(&mut self, hold: Duration) -> anyhow::Result<()> {
        let until = now_ms() + hold.as_millis() as u64;
        self.note(&format!(
            "reserved until {until} by process {}\n",
            std::process::id()
        ))
        .with_context(|| {
            format!(
                "cannot reserve in {}: make room there, or name another folder with --locks",
                self.path.display()
            )
        })
    }

    /// Removes the reservation, so that the lock ends with this process.
    pub(super) fn release(&mut self) -> io::Result<()> {
        self.note("")
    }

    /// Passes the lock on to the program that this process becomes, and to its child processes.
    pub(super) fn inherit(&self) -> io::Result<()> {
        Ok(fcntl_setfd(&self.file, FdFlags::empty())?)
    }

    fn note(&mut self, text: &str) -> io::Result<()> {
        write_note(&mut self.file, text)
    }
}

/// Returns `true` if waiting cannot resolve the error. A full disk or too many open files are
/// temporary, but another user's file is not.
fn is_lasting(error: &io::Error) -> bool {
    use io::ErrorKind::{Interrupted, OutOfMemory, QuotaExceeded, StorageFull};
    let passes = matches!(
        error.kind(),
        Interrupted | OutOfMemory | QuotaExceeded | StorageFull
    );
    !passes
        && !matches!(
            Errno::from_io_error(error),
            Some(Errno::MFILE | Errno::NFILE)
        )
}

/// Returns the remaining time of a reservation by a process that has ended.
fn reserved_for(note: &str, now_ms: u64) -> Option<Duration> {
    let until: u64 = note
        .strip_prefix("reserved until ")?
        .split(' ')
        .next()?
        .parse()
        .ok()?;
    let left = Duration::from_millis(until.checked_sub(now_ms)?);
    // A reservation written with a wrong clock must not last for years.
    (!left.is_zero() && left <= LONGEST_HOLD).then_some(left)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{MetadataExt, symlink};

    use super::*;
    use crate::lock_file::is_still;

    fn locks() -> (tempfile::TempDir, Locks) {
        let folder = tempfile::tempdir().unwrap();
        let locks = Locks::new(Some(folder.path())).unwrap();
        (folder, locks)
    }

    fn why(attempt: Result<Lock, String>) -> String {
        attempt.err().unwrap_or_else(|| "taken by me".to_owned())
    }

    #[test]
    fn one_at_a_time_and_the_next_when_it_is_let_go() {
        let (_folder, locks) = locks();
        let Ok(first) = locks.take("GPU-1") else {
            panic!("nobody has it")
        };
        assert_eq!(why(locks.take("GPU-1")), "taken");
        assert!(locks.take("GPU-2").is_ok(), "another GPU");
        drop(first);
        assert!(locks.take("GPU-1").is_ok());
        let mode = fs::metadata(locks.path("GPU-1")).unwrap().mode();
        assert_eq!(
            mode & 0o777,
            0o666,
            "other users can open it, whatever the umask"
        );
    }

    #[test]
    fn a_reservation_outlives_the_waiter_and_ends() {
        let (_folder, locks) = locks();
        let Ok(mut lock) = locks.take("GPU-1") else {
            panic!("nobody has it")
        };
        lock.reserve(Duration::from_secs(90)).unwrap();
        drop(lock);
        assert!(why(locks.take("GPU-1")).starts_with("reserved 1m"));
        let write = |note: &str| fs::write(locks.path("GPU-1"), note).unwrap();
        let now = now_ms();
        for note in [
            format!("reserved until {now} by process 1\n"),
            format!("reserved until {} by process 1\n", now + 2 * 3_600_000),
            "reserved until tomorrow\n".to_owned(),
            "nonsense".to_owned(),
        ] {
            write(&note);
            assert!(locks.take("GPU-1").is_ok(), "{note}");
        }
    }

    #[test]
    fn what_somebody_put_there_is_neither_followed_nor_written_to() {
        let (folder, locks) = locks();
        let precious = folder.path().join("precious");
        fs::write(&precious, "text").unwrap();
        symlink(&precious, locks.path("GPU-link")).unwrap();
        fs::hard_link(&precious, locks.path("GPU-hard")).unwrap();
        fs::create_dir(locks.path("GPU-folder")).unwrap();
        symlink(folder.path().join("nowhere"), locks.path("GPU-dangling")).unwrap();
        for uuid in ["GPU-link", "GPU-hard", "GPU-folder", "GPU-dangling"] {
            assert!(why(locks.take(uuid)).starts_with("lock "), "{uuid}");
        }
        assert_eq!(fs::read_to_string(&precious).unwrap(), "text");
        assert!(!folder.path().join("nowhere").exists());
        assert!(locks.path("../x").starts_with(folder.path()));
        assert!(!locks.path("../x").display().to_string().contains(".."));
    }

    #[test]
    fn a_lock_on_a_file_that_was_removed_keeps_nobody_out_and_none_is_taken_on_it() {
        let (_folder, locks) = locks();
        let Ok(old) = locks.take("GPU-1") else {
            panic!("nobody has it")
        };
        fs::remove_file(locks.path("GPU-1")).unwrap();
        assert!(!is_still(&locks.path("GPU-1"), &old.file));
        let Ok(new) = locks.take("GPU-1") else {
            panic!("nobody has the new one")
        };
        assert!(is_still(&locks.path("GPU-1"), &new.file));
    }

    #[test]
    fn a_folder_that_is_none_is_refused() {
        let failure = Locks::new(Some(Path::new("/nowhere/at/all"))).unwrap_err();
        assert!(failure.message().unwrap().contains("--locks"));
    }
}
