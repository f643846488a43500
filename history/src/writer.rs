//! The thread that writes to disk, so that nothing else waits for it.
//!
//! A slow or full disk costs history on disk, never readings: what does not get through stays in memory for hours. While
//! something is wrong, it is tried again every minute.

use std::{
    collections::VecDeque,
    fs::{self, File, OpenOptions},
    io::{self, Read, Write},
    os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt},
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, PoisonError,
        mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel},
    },
    thread,
    time::{Duration, Instant},
};

use gpumon_probe::model::{Event, now_ms};
use rustix::{
    fs::{FlockOperation, flock},
    io::Errno,
    system::uname,
};

use crate::{
    bucket::{BUCKET_MS, Bucket},
    database::{Database, DatabaseError, Devices, EVENTS, FILE, Limits, RolledUp},
    grid::Grid,
    memory::REACH_MS,
    wanted::Wanted,
};

/// So much may wait for the disk.
const QUEUE: usize = 256;

/// So many buckets wait for a disk that does not work: ten minutes.
const PENDING_BUCKETS: usize = 60;

/// So many events.
const PENDING_EVENTS: usize = 1000;

const RETRY: Duration = Duration::from_mins(1);

/// What there is to write is written after this time at the latest.
const EVENTS_WAIT: Duration = Duration::from_secs(10);

/// How long the last of it may take when the program ends.
const LAST: Duration = Duration::from_secs(2);

/// Where and how much.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The folder; it is made where there is none.
    pub folder: PathBuf,
    /// How large the file may become.
    pub size_bytes: u64,
}

enum Item {
    Bucket(Box<Bucket>),
    Event(Box<Event>),
    /// To write what is left, say so and end.
    End(SyncSender<()>),
}

/// How it goes with the disk.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Status {
    /// Whether history can be read from disk. It can be where it is not written: on a full disk, or where another gpumon
    /// writes.
    pub is_readable: bool,
    /// What is wrong, with its cure.
    pub problem: Option<String>,
    /// The end of the newest bucket that is on disk.
    pub written_ms: u64,
}

/// What there was on disk when the program started.
#[derive(Debug)]
pub struct Restored {
    /// The last minutes.
    pub grid: Grid,
    /// The newest events.
    pub events: Vec<Event>,
}

/// The way to the thread.
#[derive(Debug)]
pub struct Writer {
    sender: SyncSender<Item>,
    status: Arc<Mutex<Status>>,
    folder: PathBuf,
}

impl Writer {
    /// Starts it. `restore` gets what is there already, of the last `reach_ms`; `tell` gets each problem once, and that it is
    /// over.
    ///
    /// # Errors
    /// Where there can be no more threads.
    pub fn start(
        settings: Settings,
        reach_ms: u64,
        restore: impl FnOnce(Restored) + Send + 'static,
        tell: impl Fn(&str) + Send + 'static,
    ) -> io::Result<Self> {
        let (sender, items) = sync_channel(QUEUE);
        let status = Arc::<Mutex<Status>>::default();
        let folder = settings.folder.clone();
        let mut thread = WriterThread {
            settings,
            status: Arc::clone(&status),
            open: None,
            is_readable: false,
            buckets: VecDeque::new(),
            events: VecDeque::new(),
            retry_at: None,
            forget_at: Instant::now(),
            restore: Some(Box::new(restore)),
            reach_ms,
            tell: Box::new(tell),
        };
        thread::Builder::new().name("history".to_owned()).spawn(move || thread.run(&items))?;
        Ok(Self { sender, status, folder })
    }

    /// Hands it a bucket. It never waits; where too much waits already, the bucket is not written.
    pub fn add_bucket(&self, bucket: Bucket) {
        let _ = self.sender.try_send(Item::Bucket(Box::new(bucket)));
    }

    /// Hands it an event, in the same way.
    pub fn add_event(&self, event: Event) {
        let _ = self.sender.try_send(Item::Event(Box::new(event)));
    }

    /// Writes what is left; waits for that for two seconds at most.
    pub fn end(&self) {
        let (done, ended) = sync_channel(1);
        if self.sender.try_send(Item::End(done)).is_ok() {
            let _ = ended.recv_timeout(LAST);
        }
    }

    /// How it goes.
    pub fn status(&self) -> Status {
        self.status.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// A connection to read, where there is something to be read. It waits for the disk.
    ///
    /// # Errors
    /// Where it fails.
    pub fn reader(&self) -> Result<Option<Database>, DatabaseError> {
        if self.status().is_readable { Database::open_to_read(&self.folder).map(Some) } else { Ok(None) }
    }
}

/// A database that is being written.
struct Open {
    database: Database,
    devices: Devices,
    rolled_up: RolledUp,
    /// Which file it is.
    inode: u64,
    /// Held for as long as nobody else may write here.
    _lock: File,
}

struct WriterThread {
    settings: Settings,
    status: Arc<Mutex<Status>>,
    open: Option<Open>,
    is_readable: bool,
    buckets: VecDeque<Bucket>,
    events: VecDeque<Event>,
    /// When what failed is tried again.
    retry_at: Option<Instant>,
    /// When old rows are deleted next.
    forget_at: Instant,
    restore: Option<Box<dyn FnOnce(Restored) + Send>>,
    reach_ms: u64,
    tell: Box<dyn Fn(&str) + Send>,
}

/// What is wrong, for people.
type Problem = String;

impl WriterThread {
    fn run(&mut self, items: &Receiver<Item>) {
        self.work();
        let mut write_at = None;
        loop {
            let wait = write_at.map_or(RETRY, |at: Instant| at.saturating_duration_since(Instant::now()));
            match items.recv_timeout(wait) {
                Ok(Item::Bucket(bucket)) => {
                    self.buckets.push_back(*bucket);
                    write_at = Some(Instant::now());
                }
                Ok(Item::Event(event)) => {
                    self.events.push_back(*event);
                    write_at = write_at.or(Some(Instant::now() + EVENTS_WAIT));
                }
                Ok(Item::End(done)) => {
                    self.retry_at = None;
                    self.work();
                    // Closed, the file is whole without the others beside it.
                    self.open = None;
                    let _ = done.send(());
                    return;
                }
                Err(RecvTimeoutError::Timeout) => {
                    self.work();
                    write_at = None;
                }
                Err(RecvTimeoutError::Disconnected) => return self.work(),
            }
            // What a disk that does not work cannot take is kept for some minutes.
            self.buckets.drain(..self.buckets.len().saturating_sub(PENDING_BUCKETS));
            self.events.drain(..self.events.len().saturating_sub(PENDING_EVENTS));
        }
    }

    /// Writes what there is, unless it has just failed.
    fn work(&mut self) {
        if self.retry_at.is_some_and(|at| Instant::now() < at) {
            return;
        }
        let done = self.open().and_then(|()| self.write());
        self.retry_at = done.is_err().then(|| Instant::now() + RETRY);
        let problem = done.err();
        let told = {
            let mut status = self.status.lock().unwrap_or_else(PoisonError::into_inner);
            status.is_readable = self.is_readable;
            std::mem::replace(&mut status.problem, problem.clone())
        };
        match (&problem, told) {
            (Some(problem), told) if told.as_ref() != Some(problem) => (self.tell)(problem),
            (None, Some(_)) => (self.tell)(&format!("history is written to {} again", self.folder())),
            _ => {}
        }
    }

    fn folder(&self) -> String {
        self.settings.folder.display().to_string()
    }

    fn problem(&self, why: &str) -> Problem {
        let (folder, hours) = (self.folder(), REACH_MS / 3_600_000);
        format!(
            "history is not written to {folder}: {why}. It is kept in memory for {hours} hours; retrying every minute"
        )
    }

    fn failed(&self, error: &DatabaseError) -> Problem {
        self.problem(&error.to_string())
    }

    /// Makes sure that there is a database, and that it is still the one in the folder.
    fn open(&mut self) -> Result<(), Problem> {
        let path = self.settings.folder.join(FILE);
        if let Some(open) = &self.open {
            if fs::metadata(&path).is_ok_and(|file| file.ino() == open.inode) {
                return Ok(());
            }
            (self.open, self.is_readable) = (None, false);
        }
        let lock = lock(&self.settings.folder).map_err(|refusal| match refusal {
            Refusal::Shared(why) => {
                let database = Database::open_to_read(&self.settings.folder);
                self.is_readable = database.is_ok_and(|database| self.restore(&database));
                self.problem(&why)
            }
            Refusal::Unusable(why) => self.problem(&why),
        })?;
        let prepared = match prepare(&self.settings.folder) {
            Err(error) if error.is_corrupt() => {
                self.move_aside()?;
                prepare(&self.settings.folder)
            }
            prepared => prepared,
        };
        let (database, devices, rolled_up) = prepared.map_err(|error| self.failed(&error))?;
        self.is_readable = self.restore(&database);
        let inode = fs::metadata(&path).map(|file| file.ino()).map_err(|error| self.problem(&error.to_string()))?;
        self.open = Some(Open { database, devices, rolled_up, inode, _lock: lock });
        Ok(())
    }

    /// Hands over what the last minutes were, once; whether it could be read.
    fn restore(&mut self, database: &Database) -> bool {
        if self.restore.is_none() {
            return true;
        }
        let now_ms = now_ms();
        let mut grid = Grid::new(now_ms.saturating_sub(self.reach_ms), now_ms, BUCKET_MS, Wanted::all());
        let events = database.events(0, now_ms, EVENTS);
        let is_read = database.add_to(&mut grid, 0).is_ok();
        if is_read && let Some(restore) = self.restore.take() {
            restore(Restored { grid, events: events.unwrap_or_default() });
        }
        is_read
    }

    /// A damaged file is kept for whoever can read it.
    fn move_aside(&mut self) -> Result<(), Problem> {
        self.is_readable = false;
        let folder = &self.settings.folder;
        let aside = format!("{FILE}.corrupt-{}", now_ms() / 1000);
        fs::rename(folder.join(FILE), folder.join(&aside)).map_err(|error| self.problem(&error.to_string()))?;
        for beside in ["-wal", "-shm"] {
            let _ = fs::rename(folder.join(format!("{FILE}{beside}")), folder.join(format!("{aside}{beside}")));
        }
        (self.tell)(&format!("{FILE} in {} was damaged: it is kept as {aside}, and a new one is begun", self.folder()));
        Ok(())
    }

    fn write(&mut self) -> Result<(), Problem> {
        let Some(open) = &mut self.open else { return Ok(()) };
        let (buckets, events) = (&self.buckets, &self.events);
        let newest_ms = buckets.back().map(|bucket| bucket.at_ms + BUCKET_MS);
        let (is_due, limits) = (Instant::now() >= self.forget_at, Limits { size_bytes: self.settings.size_bytes });
        let written = open.database.at_once(|database| {
            buckets.iter().try_for_each(|bucket| database.add_bucket(bucket, &mut open.devices))?;
            events.iter().try_for_each(|event| database.add_event(event))?;
            if let Some(newest_ms) = newest_ms {
                database.roll_up(&mut open.rolled_up, newest_ms)?;
            }
            if is_due { database.forget(now_ms(), limits) } else { Ok(()) }
        });
        match written.map_err(DatabaseError::from) {
            Ok(()) => {
                self.buckets.clear();
                self.events.clear();
                if is_due {
                    self.forget_at = Instant::now() + RETRY;
                }
                if let Some(written_ms) = newest_ms {
                    self.status.lock().unwrap_or_else(PoisonError::into_inner).written_ms = written_ms;
                }
                Ok(())
            }
            Err(error) => {
                // What was made in the transaction is forgotten: devices, and how far the tiers had come.
                self.open = None;
                if error.is_corrupt() {
                    self.move_aside()?;
                }
                Err(self.failed(&error))
            }
        }
    }
}

/// Opens the database of a folder, with what is needed to go on where the last program ended.
fn prepare(folder: &Path) -> Result<(Database, Devices, RolledUp), DatabaseError> {
    let database = Database::open(folder)?;
    // Read first: what is damaged is kept as it was.
    let (devices, rolled_up) = (Devices::of(&database)?, database.rolled_up()?);
    database.end_what_was_left_open()?;
    Ok((database, devices, rolled_up))
}

/// Why a folder cannot be written to.
enum Refusal {
    /// A program of this machine writes there, so that what it writes can be read.
    Shared(String),
    Unusable(String),
}

/// Makes the folder for this user alone, and says that this program writes there.
fn lock(folder: &Path) -> Result<File, Refusal> {
    let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(folder);
    made.map_err(|error| {
        Refusal::Unusable(format!("the directory cannot be made ({error}): name another with --data-dir"))
    })?;
    let path = folder.join("history.lock");
    let file = OpenOptions::new().create(true).truncate(false).read(true).write(true).mode(0o600).open(&path);
    let mut file = file.map_err(|error| {
        Refusal::Unusable(match error.kind() {
            io::ErrorKind::ReadOnlyFilesystem => "it is read-only: name another directory with --data-dir".to_owned(),
            _ => format!("{} cannot be opened ({error}): check owner and permissions", path.display()),
        })
    })?;
    let own = uname().nodename().to_string_lossy().into_owned();
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => {
            // For whoever shares the folder over a network. Without it, nobody reads there meanwhile.
            let _ = file.set_len(0).and_then(|()| file.write_all(own.as_bytes()));
            Ok(file)
        }
        Err(Errno::WOULDBLOCK) => {
            let mut other = String::new();
            let _ = file.read_to_string(&mut other);
            // Two machines do not share the memory in which SQLite keeps what is new.
            Err(if other == own {
                Refusal::Shared(
                    "another gpumon writes its history there, which is shown: give each its own --data-dir".to_owned(),
                )
            } else {
                Refusal::Unusable(format!(
                    "the gpumon of {other} writes its history there: name a directory of this machine with --data-dir"
                ))
            })
        }
        Err(error) => Err(Refusal::Unusable(format!(
            "{} cannot be locked ({error}): name a directory on a local disk with --data-dir",
            path.display()
        ))),
    }
}
