//! The thread that writes history to disk, so that nothing else waits for the disk.
//!
//! A slow or full disk can lose history but never delays readings: unwritten data stays in memory
//! for hours. After an error, writing is retried every minute.

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

/// The time limit for the last write when the program ends.
const FINAL_WRITE_TIMEOUT: Duration = Duration::from_secs(2);

/// The directory and size limit of the history.
#[derive(Debug, Clone)]
pub struct WriterSettings {
    /// The directory, which is created if necessary.
    pub folder: PathBuf,
    /// The size limit of all files in bytes.
    pub size_bytes: u64,
}

/// The state of the writer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WriterStatus {
    /// Whether history can be read from disk. This can be `true` even if it cannot be written, for
    /// example on a full disk.
    pub is_readable: bool,
    /// The problem and its remedy.
    pub problem: Option<String>,
    /// The end of the newest bucket that is on disk.
    pub written_ms: u64,
}

/// The stored history at the start of the program.
#[derive(Debug)]
pub struct RestoredHistory {
    /// The values of the last minutes.
    pub grid: Grid,
    /// The newest events.
    pub events: Vec<Event>,
}

/// The handle of the writer thread.
#[derive(Debug)]
pub struct Writer {
    inbox: Arc<Inbox>,
    status: Arc<Mutex<WriterStatus>>,
    size_bytes: Arc<AtomicU64>,
    folder: PathBuf,
}

impl Writer {
    /// Starts the thread. `restore` receives the stored history of the last `reach_ms`. `tell`
    /// receives each problem once, and a message when the problem is solved.
    ///
    /// # Errors
    /// Returns an error if the thread cannot be created.
    pub fn start(
        settings: WriterSettings,
        reach_ms: u64,
        restore: impl FnOnce(RestoredHistory) + Send + 'static,
        tell: impl Fn(&str) + Send + 'static,
    ) -> io::Result<Self> {
        let (inbox, status) = (
            Arc::<Inbox>::default(),
            Arc::<Mutex<WriterStatus>>::default(),
        );
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

    /// Changes the size limit. Excess rows are deleted within a minute after the next write.
    pub fn set_size_limit(&self, size_bytes: u64) {
        self.size_bytes.store(size_bytes, Ordering::Relaxed);
    }

    /// Adds a bucket without waiting. While the disk does not work, the bucket is kept for as long
    /// as the history in memory covers.
    pub fn add_bucket(&self, bucket: Bucket) {
        self.inbox.add_bucket(bucket);
    }

    /// Adds an event without waiting.
    pub fn add_event(&self, event: Event) {
        self.inbox.add_event(event);
    }

    /// Writes all remaining data and ends the thread, waiting for at most two seconds.
    pub fn end(&self) {
        let (done, ended) = sync_channel(1);
        self.inbox.end(Some(done));
        let _ = ended.recv_timeout(FINAL_WRITE_TIMEOUT);
    }

    pub fn status(&self) -> WriterStatus {
        self.status
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Opens a connection for reading, which may wait for the disk. Returns `None` if there is
    /// nothing to be read.
    ///
    /// # Errors
    /// Returns an error if the database cannot be opened.
    pub fn open_reader(&self) -> Result<Option<Database>, DatabaseError> {
        if !self.status().is_readable {
            return Ok(None);
        }
        let inode = database::read_inode(&self.folder);
        Database::open_to_read(&self.folder)
            .map(Some)
            .inspect_err(|error| self.report_if_damaged(inode, error))
    }

    /// Reports a reader's error. If the file is damaged, the writer replaces it even if writing has
    /// not reached the damaged part.
    pub fn report_read_error(&self, database: &Database, error: &DatabaseError) {
        self.report_if_damaged(database.inode(), error);
    }

    fn report_if_damaged(&self, inode: Option<u64>, error: &DatabaseError) {
        if let Some(inode) = inode.filter(|_| error.is_corrupt()) {
            self.inbox.report_damage(inode);
        }
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.inbox.end(None);
    }
}
