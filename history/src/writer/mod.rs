//! The thread that writes to disk, so that nothing else waits for it.
//!
//! A slow or full disk costs history on disk, never readings: what does not get through stays in
//! memory for hours. While something is wrong, it is tried again every minute.

mod aside;
mod folder;
mod inbox;
mod take_over;
mod write_loop;

use std::{
    io,
    path::PathBuf,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
        mpsc::sync_channel,
    },
    thread,
    time::Duration,
};

use gpumon_probe::model::Event;

use self::{inbox::Inbox, write_loop::WriterThread};
use crate::{
    bucket::Bucket,
    database::{self, Database, DatabaseError},
    grid::Grid,
};

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

/// How it goes with the disk.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Status {
    /// Whether history can be read from disk. It can be where it is not written: on a full disk, or
    /// where another gpumon writes.
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
    inbox: Arc<Inbox>,
    status: Arc<Mutex<Status>>,
    size_bytes: Arc<AtomicU64>,
    folder: PathBuf,
}

impl Writer {
    /// Starts it. `restore` gets what is there already, of the last `reach_ms`; `tell` gets each
    /// problem once, and that it is over.
    ///
    /// # Errors
    /// Where there can be no more threads.
    pub fn start(
        settings: Settings,
        reach_ms: u64,
        restore: impl FnOnce(Restored) + Send + 'static,
        tell: impl Fn(&str) + Send + 'static,
    ) -> io::Result<Self> {
        let (inbox, status) = (Arc::<Inbox>::default(), Arc::<Mutex<Status>>::default());
        let folder = settings.folder.clone();
        let size_bytes = Arc::new(AtomicU64::new(settings.size_bytes));
        let mut thread = WriterThread::new(
            settings,
            &size_bytes,
            &status,
            (Box::new(restore), reach_ms),
            Box::new(tell),
        );
        let items = Arc::clone(&inbox);
        thread::Builder::new()
            .name("history".to_owned())
            .spawn(move || thread.run(&items))?;
        Ok(Self {
            inbox,
            status,
            size_bytes,
            folder,
        })
    }

    /// How large the file may become from now on; what is too much is deleted within a minute of
    /// the next write.
    pub fn limit(&self, size_bytes: u64) {
        self.size_bytes.store(size_bytes, Ordering::Relaxed);
    }

    /// Hands it a bucket. It never waits; what a disk that does not work cannot take is kept for as
    /// long as memory keeps it.
    pub fn add_bucket(&self, bucket: Bucket) {
        self.inbox.add_bucket(bucket);
    }

    /// Hands it an event, in the same way.
    pub fn add_event(&self, event: Event) {
        self.inbox.add_event(event);
    }

    /// Writes what is left; waits for that for two seconds at most.
    pub fn end(&self) {
        let (done, ended) = sync_channel(1);
        self.inbox.end(Some(done));
        let _ = ended.recv_timeout(LAST);
    }

    /// How it goes.
    pub fn status(&self) -> Status {
        self.status
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// A connection to read, where there is something to be read. It waits for the disk.
    ///
    /// # Errors
    /// Where it fails.
    pub fn reader(&self) -> Result<Option<Database>, DatabaseError> {
        if !self.status().is_readable {
            return Ok(None);
        }
        let inode = database::inode(&self.folder);
        Database::open_to_read(&self.folder)
            .map(Some)
            .inspect_err(|error| self.hear_of(inode, error))
    }

    /// Takes in what went wrong for a reader: a damaged file is replaced, although what is written
    /// meets no damage.
    pub fn reading_failed(&self, database: &Database, error: &DatabaseError) {
        self.hear_of(database.inode(), error);
    }

    fn hear_of(&self, inode: Option<u64>, error: &DatabaseError) {
        if let Some(inode) = inode.filter(|_| error.is_corrupt()) {
            self.inbox.add_damage(inode);
        }
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.inbox.end(None);
    }
}
