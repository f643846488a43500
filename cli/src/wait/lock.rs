//! Locks on GPUs, which are files shared by all users of the machine, and the handover of locked
//! GPUs.
//!
//! A lock ends with the process that holds it. This process may end before the program that will
//! use the GPU has started. It therefore writes a reservation with an end time to the lock file.

use std::{
    env,
    ffi::{OsStr, OsString},
    fs::File,
    io,
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use anyhow::{Context, anyhow};
use clap::ValueEnum;
use gpumon_probe::{
    model::now_ms,
    units::{AcceptedAmounts, format_short_duration},
};
use rustix::{
    fs::{Access, access},
    io::{Errno, FdFlags, fcntl_setfd},
};

use super::{reader::Reader, search::LockedDevice};
use crate::{
    exit::{Failure, Result, usage},
    lock_file::{self, LOCK_FOLDERS, LockResult, open_lock_file, write_lock_text},
    terminal::output::print_raw,
    visible_devices::VisibleName,
};

/// The maximum time for which a GPU stays reserved after the waiting process has ended.
const MAX_RESERVATION: Duration = Duration::from_hours(1);

/// The accepted times for a reservation.
pub(crate) const ACCEPTED_HOLD_TIMES: AcceptedAmounts<Duration> = AcceptedAmounts::accept_durations(
    Duration::from_secs(1),
    MAX_RESERVATION,
    "a time from 1s to 1h, such as 30s or 5m",
);

#[derive(Debug, Clone)]
pub(crate) struct Locks {
    folder: PathBuf,
}

/// A lock that this process holds on a GPU.
#[derive(Debug)]
pub(super) struct Lock {
    path: PathBuf,
    file: File,
    /// The time at which the GPU was locked. Earlier readings may be outdated.
    pub(super) since_ms: u64,
}

impl Locks {
    /// Opens the folder `named`, or the folder that all users share if none is named.
    pub(crate) fn new(named: Option<&Path>) -> Result<Self, Failure> {
        if let Some(folder) = named {
            if !folder.is_dir() {
                return Err(usage!(
                    "{} is not a folder: create it, or omit --locks",
                    folder.display()
                ));
            }
            return Ok(Self {
                folder: folder.to_owned(),
            });
        }
        let shared = lock_file::find_shared_lock_folder().map(|folder| Self { folder });
        let why = || {
            anyhow!(
                "no folder for lock files: neither {} is writable by all users; choose a folder \
                 with --locks",
                LOCK_FOLDERS.join(" nor ")
            )
        };
        Ok(shared.with_context(why)?)
    }

    /// Returns the reason why the GPU with this UUID can never be locked, if there is one.
    pub(super) fn find_permanent_obstacle(&self, uuid: &str) -> Option<String> {
        let path = self.lock_path(uuid);
        let error = open_lock_file(&path).err().filter(is_permanent)?;
        let cure = "remove the file, or choose another folder with --locks";
        Some(format!(
            "its lock file {} cannot be opened ({error}): {cure}",
            path.display()
        ))
    }

    /// Tries to lock the GPU with this UUID, without waiting.
    ///
    /// # Errors
    /// Returns the reason why the GPU cannot be taken at present.
    pub(super) fn try_lock(&self, uuid: &str) -> Result<Lock, String> {
        let path = self.lock_path(uuid);
        let taken = lock_file::try_lock(&path);
        let taken = taken.map_err(|error| format!("lock {}: {error}", path.display()))?;
        let LockResult::Mine(file, note) = taken else {
            return Err("taken".to_owned());
        };
        let since_ms = now_ms();
        match remaining_reservation(&note, since_ms) {
            Some(left) => Err(format!("reserved {}", format_short_duration(left))),
            None => Ok(Lock {
                path,
                file,
                since_ms,
            }),
        }
    }

    fn lock_path(&self, uuid: &str) -> PathBuf {
        lock_file::lock_path(&self.folder, "gpumon", uuid)
    }
}

impl Lock {
    /// Reserves the GPU for the time `hold` after this process has ended.
    fn reserve_after_exit(&mut self, hold: Duration) -> anyhow::Result<()> {
        let until = now_ms() + hold.as_millis() as u64;
        let text = format!("reserved until {until} by process {}\n", std::process::id());
        write_lock_text(&mut self.file, &text).with_context(|| {
            format!(
                "cannot write the reservation to {}: free disk space there, or choose another \
                 folder with --locks",
                self.path.display()
            )
        })
    }

    /// Removes the reservation, so that the GPU is free when this process ends.
    pub(super) fn release(&mut self) -> io::Result<()> {
        write_lock_text(&mut self.file, "")
    }

    /// Makes the lock inheritable. The command that replaces this process then keeps the lock, and
    /// so do the command's child processes.
    fn make_inheritable(&self) -> io::Result<()> {
        Ok(fcntl_setfd(&self.file, FdFlags::empty())?)
    }
}

/// Returns `true` if waiting cannot resolve the error. A full disk or too many open files are
/// problems that may go away; a file that belongs to another user is not.
fn is_permanent(error: &io::Error) -> bool {
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

/// Returns the remaining time of a reservation that was written by a process that has ended.
fn remaining_reservation(note: &str, now_ms: u64) -> Option<Duration> {
    let until: u64 = note
        .strip_prefix("reserved until ")?
        .split(' ')
        .next()?
        .parse()
        .ok()?;
    let left = Duration::from_millis(until.checked_sub(now_ms)?);
    // A reservation with more time left than the maximum was written while the clock was wrong, so
    // it is ignored.
    (!left.is_zero() && left <= MAX_RESERVATION).then_some(left)
}

// Handover of the devices: either a command replaces this process and receives them, or they are
// printed.

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum DeviceFormat {
    /// Index as in nvidia-smi for NVIDIA: 3, or 3:1 for a MIG device or a partition
    Index,
    /// UUID, which identifies the same GPU in every program
    Uuid,
}

/// The exit code of env(1) and shells for a command that does not exist. The constant below is
/// their exit code for a command that cannot be started.
const COMMAND_NOT_FOUND: u8 = 127;
const COMMAND_NOT_STARTED: u8 = 126;

/// Checks that the command exists, so that a missing command is reported before the wait for a GPU
/// begins.
pub(crate) fn check_command_exists(command: &[OsString]) -> Result {
    let Some(program) = command.first() else {
        return Ok(());
    };
    let can_run = |path: &Path| path.is_file() && access(path, Access::EXEC_OK).is_ok();
    let places: Vec<PathBuf> = if program.as_encoded_bytes().contains(&b'/') {
        vec![program.into()]
    } else {
        // Without `PATH`, the system searches its default folders when the command is started.
        let Some(path) = env::var_os("PATH") else {
            return Ok(());
        };
        env::split_paths(&path)
            .map(|folder| folder.join(program))
            .collect()
    };
    if places.iter().any(|place| can_run(place)) {
        return Ok(());
    }
    Err(match places.iter().find(|place| place.exists()) {
        Some(place) => Failure::with_code(
            anyhow!(
                "cannot run {}: the file is not executable (chmod +x)",
                place.display()
            ),
            COMMAND_NOT_STARTED,
        ),
        None => Failure::with_code(
            anyhow!(
                "cannot run {}: there is no such command; check its name and PATH",
                program.to_string_lossy()
            ),
            COMMAND_NOT_FOUND,
        ),
    })
}

/// Prints the devices and keeps them reserved for the time `hold` after this process has ended.
pub(crate) fn print_devices(
    mut found: Vec<LockedDevice>,
    format: DeviceFormat,
    hold: Duration,
) -> Result {
    let name = |held: &LockedDevice| match format {
        DeviceFormat::Index => held.candidate.index_label(),
        DeviceFormat::Uuid => held.uuid.clone(),
    };
    let names = found.iter().map(name).collect::<Vec<_>>().join(",");
    // The devices are reserved before they are printed. If printing fails, they are released.
    let reserved = found
        .iter_mut()
        .try_for_each(|held| held.lock.reserve_after_exit(hold))
        .map_err(Failure::from);
    let printed = reserved.and_then(|()| print_raw(&(names + "\n")));
    if printed.is_err() {
        for held in &mut found {
            // An error is ignored: if the lock file cannot be written now, the reservation could
            // not be written to it either.
            let _ = held.lock.release();
        }
    }
    printed
}

/// Replaces this process with the command. The command and its child processes inherit the locks
/// and hold them until they end.
///
/// If possible, the vendor's environment variables are set to UUIDs, because the vendor's libraries
/// may number GPUs differently from gpumon.
pub(crate) fn run_command(
    found: &[LockedDevice],
    command: &[OsString],
    reader: &mut Reader,
) -> Failure {
    reader.close();
    let chosen: Vec<_> = found
        .iter()
        .filter_map(|held| held.candidate.visible_as.clone())
        .collect();
    if let Some(error) = found
        .iter()
        .find_map(|held| held.lock.make_inheritable().err())
    {
        return anyhow!("cannot pass the lock to the command: {error}").into();
    }
    let [program, arguments @ ..] = command else {
        return usage!("no command after --: add a command");
    };
    let error = Command::new(program)
        .args(arguments)
        .envs(VisibleName::to_variables(&chosen))
        .exec();
    make_start_failure(program, &error)
}

/// Returns the error for a command that could not be started, with the appropriate exit code.
pub(crate) fn make_start_failure(program: &OsStr, error: &io::Error) -> Failure {
    let code = if error.kind() == io::ErrorKind::NotFound {
        COMMAND_NOT_FOUND
    } else {
        COMMAND_NOT_STARTED
    };
    Failure::with_code(
        anyhow!("cannot run {}: {error}", program.to_string_lossy()),
        code,
    )
}

#[cfg(test)]
mod tests {
    use std::{
        fs,
        os::unix::fs::{MetadataExt, symlink},
    };

    use super::*;
    use crate::lock_file::is_same_file;

    fn open_locks() -> (tempfile::TempDir, Locks) {
        let folder = tempfile::tempdir().unwrap();
        let locks = Locks::new(Some(folder.path())).unwrap();
        (folder, locks)
    }

    fn expect_failure(attempt: Result<Lock, String>) -> String {
        attempt.err().unwrap_or_else(|| "taken by me".to_owned())
    }

    #[test]
    fn lock_is_exclusive_until_release() {
        let (_folder, locks) = open_locks();
        let Ok(first) = locks.try_lock("GPU-1") else {
            panic!("nobody has it")
        };
        assert_eq!(expect_failure(locks.try_lock("GPU-1")), "taken");
        assert!(locks.try_lock("GPU-2").is_ok(), "another GPU");
        drop(first);
        assert!(locks.try_lock("GPU-1").is_ok());
        let mode = fs::metadata(locks.lock_path("GPU-1")).unwrap().mode();
        assert_eq!(
            mode & 0o777,
            0o666,
            "other users can open it, whatever the umask"
        );
    }

    #[test]
    fn gpu_reservation_outlasts_process_until_it_expires() {
        let (_folder, locks) = open_locks();
        let Ok(mut lock) = locks.try_lock("GPU-1") else {
            panic!("nobody has it")
        };
        lock.reserve_after_exit(Duration::from_secs(90)).unwrap();
        drop(lock);
        assert!(expect_failure(locks.try_lock("GPU-1")).starts_with("reserved 1m"));
        let write = |note: &str| fs::write(locks.lock_path("GPU-1"), note).unwrap();
        let now = now_ms();
        for note in [
            format!("reserved until {now} by process 1\n"),
            format!("reserved until {} by process 1\n", now + 2 * 3_600_000),
            "reserved until tomorrow\n".to_owned(),
            "nonsense".to_owned(),
        ] {
            write(&note);
            assert!(locks.try_lock("GPU-1").is_ok(), "{note}");
        }
    }

    #[test]
    fn links_and_folders_are_not_accepted_as_locks() {
        let (folder, locks) = open_locks();
        let precious = folder.path().join("precious");
        fs::write(&precious, "text").unwrap();
        symlink(&precious, locks.lock_path("GPU-link")).unwrap();
        fs::hard_link(&precious, locks.lock_path("GPU-hard")).unwrap();
        fs::create_dir(locks.lock_path("GPU-folder")).unwrap();
        symlink(
            folder.path().join("nowhere"),
            locks.lock_path("GPU-dangling"),
        )
        .unwrap();
        for uuid in ["GPU-link", "GPU-hard", "GPU-folder", "GPU-dangling"] {
            assert!(
                expect_failure(locks.try_lock(uuid)).starts_with("lock "),
                "{uuid}"
            );
        }
        assert_eq!(fs::read_to_string(&precious).unwrap(), "text");
        assert!(!folder.path().join("nowhere").exists());
        assert!(locks.lock_path("../x").starts_with(folder.path()));
        assert!(!locks.lock_path("../x").display().to_string().contains(".."));
    }

    #[test]
    fn lock_on_removed_file_permits_new_lock() {
        let (_folder, locks) = open_locks();
        let Ok(old) = locks.try_lock("GPU-1") else {
            panic!("nobody has it")
        };
        fs::remove_file(locks.lock_path("GPU-1")).unwrap();
        assert!(!is_same_file(&locks.lock_path("GPU-1"), &old.file));
        let Ok(new) = locks.try_lock("GPU-1") else {
            panic!("nobody has the new one")
        };
        assert!(is_same_file(&locks.lock_path("GPU-1"), &new.file));
    }

    #[test]
    fn file_is_refused_as_lock_folder() {
        let failure = Locks::new(Some(Path::new("/nowhere/at/all"))).unwrap_err();
        assert!(failure.message().unwrap().contains("--locks"));
    }
}
