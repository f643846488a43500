//! Locks on GPUs, which all users of the machine share: a file per UUID, and flock(2) on it.
//!
//! The kernel lets go of a lock when the last process that holds its file open ends, however it ends. The files stay:
//! removing one while another waiter opens it would make two locks of one. A waiter that ends when it has found a GPU
//! writes into the file until when the GPU is reserved, since what it was found for has yet to start.
//!
//! They lie in a folder in which everybody may make files and nobody remove another's. There, somebody else may have
//! made anything under the name of a lock, so that it is only opened as a plain file with one name, never through a
//! link, and never created over anything. Whoever wants to can hold all the locks; they are an agreement, not a guard.

use std::{
    fs::{self, File, Permissions},
    io::{self, Read, Seek, Write},
    os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt},
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context, anyhow};
use gpumon_probe::model::now_ms;
use rustix::{
    fs::{FlockOperation, OFlags, flock},
    io::{Errno, FdFlags, fcntl_setfd},
};

use super::amount::{LONGEST_HOLD, time};
use crate::exit::Failure;

/// Where everybody looks: the first of these that is there and open to all.
const FOLDERS: [&str; 2] = ["/run/lock", "/tmp"];
/// Anybody may write, and remove what is their own.
const OPEN_TO_ALL: u32 = 0o1777;
/// How often a file may turn out to have been replaced.
const TRIES: u32 = 5;
/// Longer than anything that is written here.
const LONGEST_NOTE: u64 = 256;

/// The folder of the locks.
#[derive(Debug, Clone)]
pub(crate) struct Locks {
    folder: PathBuf,
}

/// A GPU that nobody else can take.
#[derive(Debug)]
pub(super) struct Lock {
    path: PathBuf,
    file: File,
    /// Since when; what was read before may have changed.
    pub(super) since_ms: u64,
}

/// What came of trying to take one.
#[derive(Debug)]
pub(super) enum Attempt {
    Taken(Lock),
    /// Somebody else has it, in words.
    Busy(String),
}

impl Locks {
    /// Those in the folder that was named, or in the one that everybody shares.
    pub(crate) fn new(named: Option<&Path>) -> Result<Self, Failure> {
        if let Some(folder) = named {
            let is_folder = fs::metadata(folder).is_ok_and(|found| found.is_dir());
            let what = || anyhow!("{} is no folder: create it, or leave out --locks", folder.display());
            return is_folder.then(|| Self { folder: folder.to_owned() }).ok_or_else(|| Failure::usage(what()));
        }
        let is_shared = |folder: &&&str| {
            let found = fs::symlink_metadata(folder);
            found.is_ok_and(|found| found.is_dir() && found.mode() & OPEN_TO_ALL == OPEN_TO_ALL)
        };
        let shared = FOLDERS.iter().find(is_shared).map(|folder| Self { folder: folder.into() });
        let why = || {
            anyhow!(
                "no folder for locks: neither {} is open to all users; name one with --locks",
                FOLDERS.join(" nor ")
            )
        };
        Ok(shared.with_context(why)?)
    }

    /// Why the lock of the GPU with this UUID can never be had here, however long anybody waits.
    pub(super) fn obstacle(&self, uuid: &str) -> Option<String> {
        let path = self.path(uuid);
        let error = open(&path).err().filter(is_lasting)?;
        let cure = "remove it, or name another folder with --locks";
        Some(format!("its lock {} cannot be opened ({error}): {cure}", path.display()))
    }

    /// Tries to take the GPU with this UUID, without waiting.
    pub(super) fn take(&self, uuid: &str) -> Attempt {
        let path = self.path(uuid);
        match try_to_take(&path) {
            Ok(attempt) => attempt,
            Err(error) => Attempt::Busy(format!("lock {}: {error}", path.display())),
        }
    }

    fn path(&self, uuid: &str) -> PathBuf {
        let plain = |letter: char| if letter.is_ascii_alphanumeric() || letter == '-' { letter } else { '_' };
        self.folder.join(format!("gpumon-{}.lock", uuid.chars().map(plain).collect::<String>()))
    }
}

impl Lock {
    /// Keeps others from taking the GPU for so long after this process has ended.
    pub(super) fn reserve(&mut self, hold: Duration) -> anyhow::Result<()> {
        let until = now_ms() + hold.as_millis() as u64;
        self.note(&format!("reserved until {until} by process {}\n", std::process::id())).with_context(|| {
            format!("cannot reserve in {}: make room there, or name another folder with --locks", self.path.display())
        })
    }

    /// Keeps it no longer than this process.
    pub(super) fn release(&mut self) -> io::Result<()> {
        self.note("")
    }

    /// Keeps it for the program that this process becomes, and for what that starts.
    pub(super) fn pass_on(&self) -> io::Result<()> {
        Ok(fcntl_setfd(&self.file, FdFlags::empty())?)
    }

    fn note(&mut self, text: &str) -> io::Result<()> {
        self.file.set_len(0)?;
        self.file.rewind()?;
        self.file.write_all(text.as_bytes())
    }
}

fn try_to_take(path: &Path) -> io::Result<Attempt> {
    for _ in 0..TRIES {
        let Some(mut file) = open(path)? else { continue };
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(Errno::WOULDBLOCK) => return Ok(Attempt::Busy("taken".to_owned())),
            Err(error) => return Err(error.into()),
        }
        // A cleaner of old files may have removed it in between; a lock on what has no name keeps nobody out.
        if !is_still(path, &file) {
            continue;
        }
        return Ok(match reserved_for(&mut file, now_ms()) {
            Some(left) => Attempt::Busy(format!("reserved {}", time(left))),
            None => Attempt::Taken(Lock { path: path.to_owned(), file, since_ms: now_ms() }),
        });
    }
    Err(io::Error::other("it is replaced again and again"))
}

/// Whether waiting does not mend it: a full disk and too many open files may pass, a file of somebody else's does not.
fn is_lasting(error: &io::Error) -> bool {
    use io::ErrorKind::{Interrupted, OutOfMemory, QuotaExceeded, StorageFull};
    let passes = matches!(error.kind(), Interrupted | OutOfMemory | QuotaExceeded | StorageFull);
    !passes && !matches!(Errno::from_io_error(error), Some(Errno::MFILE | Errno::NFILE))
}

/// Opens the file, making it where there is none; `None` where another waiter was faster at that.
fn open(path: &Path) -> io::Result<Option<File>> {
    let mut options = File::options();
    // Neither a link nor a pipe of somebody else's holds this process up or leads it elsewhere.
    let careful = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    options.read(true).write(true).custom_flags(careful.bits().cast_signed());
    // Not created and opened in one: of another user's file in such a folder, the kernel refuses that.
    let file = match options.open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            match options.create_new(true).mode(0o666).open(path) {
                Ok(file) => {
                    // What the umask takes away, other users need.
                    file.set_permissions(Permissions::from_mode(0o666))?;
                    file
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Ok(None),
                Err(error) => return Err(error),
            }
        }
        opened => opened?,
    };
    let found = file.metadata()?;
    // Another name of the same file could be one that matters to somebody.
    if !found.is_file() || found.nlink() > 1 {
        return Err(io::Error::other("it is not a plain file; remove it"));
    }
    Ok(Some(file))
}

fn is_still(path: &Path, file: &File) -> bool {
    let identity = |found: fs::Metadata| (found.dev(), found.ino());
    match (fs::symlink_metadata(path), file.metadata()) {
        (Ok(named), Ok(opened)) => identity(named) == identity(opened),
        _ => false,
    }
}

/// How long the GPU is still reserved by a waiter that has ended.
fn reserved_for(file: &mut File, now_ms: u64) -> Option<Duration> {
    let mut note = String::new();
    file.take(LONGEST_NOTE).read_to_string(&mut note).ok()?;
    let until: u64 = note.strip_prefix("reserved until ")?.split(' ').next()?.parse().ok()?;
    let left = Duration::from_millis(until.checked_sub(now_ms)?);
    // A clock that was wrong does not keep a GPU for years.
    (!left.is_zero() && left <= LONGEST_HOLD).then_some(left)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn locks() -> (tempfile::TempDir, Locks) {
        let folder = tempfile::tempdir().unwrap();
        let locks = Locks::new(Some(folder.path())).unwrap();
        (folder, locks)
    }

    fn why(attempt: Attempt) -> String {
        match attempt {
            Attempt::Taken(_) => "taken by me".to_owned(),
            Attempt::Busy(why) => why,
        }
    }

    #[test]
    fn one_at_a_time_and_the_next_when_it_is_let_go() {
        let (_folder, locks) = locks();
        let Attempt::Taken(first) = locks.take("GPU-1") else { panic!("nobody has it") };
        assert_eq!(why(locks.take("GPU-1")), "taken");
        assert!(matches!(locks.take("GPU-2"), Attempt::Taken(_)), "another GPU");
        drop(first);
        assert!(matches!(locks.take("GPU-1"), Attempt::Taken(_)));
        let mode = fs::metadata(locks.path("GPU-1")).unwrap().mode();
        assert_eq!(mode & 0o777, 0o666, "other users can open it, whatever the umask");
    }

    #[test]
    fn a_reservation_outlives_the_waiter_and_ends() {
        let (_folder, locks) = locks();
        let Attempt::Taken(mut lock) = locks.take("GPU-1") else { panic!("nobody has it") };
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
            assert!(matches!(locks.take("GPU-1"), Attempt::Taken(_)), "{note}");
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
        let Attempt::Taken(old) = locks.take("GPU-1") else { panic!("nobody has it") };
        fs::remove_file(locks.path("GPU-1")).unwrap();
        assert!(!is_still(&locks.path("GPU-1"), &old.file));
        let Attempt::Taken(new) = locks.take("GPU-1") else { panic!("nobody has the new one") };
        assert!(is_still(&locks.path("GPU-1"), &new.file));
    }

    #[test]
    fn a_folder_that_is_none_is_refused() {
        let failure = Locks::new(Some(Path::new("/nowhere/at/all"))).unwrap_err();
        assert!(failure.message().unwrap().contains("--locks"));
    }
}
