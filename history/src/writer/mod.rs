//! The thread that writes history to disk, so that nothing else waits for the disk.
//!
//! A slow or full disk can lose history but never delays readings: unwritten data stays in memory
//! for hours. After an error, writing is retried every minute.

mod folder;
mod write_loop;

use std::{
    collections::VecDeque,
    io,
    path::PathBuf,
    sync::{
        Arc, Condvar, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
        mpsc::{SyncSender, sync_channel},
    },
    thread,
    time::{Duration, Instant},
};

use gpumon_probe::model::{Event, EventKind};

use self::write_loop::WriterThread;
use crate::{
    bucket::{BUCKET_MS, Bucket},
    database::{self, Database, DatabaseError},
    grid::Grid,
    memory::MemoryTier,
    span::ConditionSpan,
};

/// The time limit for the last write when the program ends.
const FINAL_WRITE_TIMEOUT: Duration = Duration::from_secs(2);

/// The directory and size limit of the history.
#[derive(Debug, Clone)]
pub struct WriterSettings {
    /// The directory. It is created if it does not exist.
    pub folder: PathBuf,
    /// The size limit of all files in bytes.
    pub size_bytes: u64,
}

/// The state of the writer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WriterStatus {
    /// Whether history can be read from disk. This can be `true` even if history cannot be written,
    /// for example on a full disk.
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

    /// Adds a bucket without waiting. While the disk does not work, the bucket stays in memory for
    /// as long as [`MemoryTier`] keeps buckets.
    pub fn add_bucket(&self, bucket: Bucket) {
        self.inbox.add_to_delivery(Duration::ZERO, |delivery| {
            delivery.pending.buckets.push(bucket);
        });
    }

    /// Adds an event without waiting.
    pub fn add_event(&self, event: Event) {
        self.inbox
            .add_to_delivery(MAX_EVENT_WAIT, |delivery| delivery.pending.add_event(event));
    }

    /// Writes all remaining data and ends the thread, waiting for at most two seconds.
    pub fn finish_writing(&self) {
        let (done, ended) = sync_channel(1);
        self.inbox.request_end(Some(done));
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

    /// Reports an error that occurred while a reader used the database. If the file is damaged, the
    /// writer replaces it, even if the writer has not encountered the damage itself.
    pub fn report_read_error(&self, database: &Database, error: &DatabaseError) {
        self.report_if_damaged(database.inode(), error);
    }

    fn report_if_damaged(&self, inode: Option<u64>, error: &DatabaseError) {
        if let Some(inode) = inode.filter(|_| error.is_corrupt()) {
            self.inbox
                .add_to_delivery(Duration::ZERO, |delivery| delivery.damaged = Some(inode));
        }
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.inbox.request_end(None);
    }
}

/// The maximum number of events in the queue while the disk does not work. Process events are
/// dropped first.
const MAX_QUEUED_EVENTS: usize = 4000;

/// The longest time that events wait before they are written.
const MAX_EVENT_WAIT: Duration = Duration::from_secs(10);

/// The data that waits to be written. Buckets are compressed and limited as in [`MemoryTier`].
#[derive(Debug, Default)]
struct Pending {
    /// The oldest buckets, which are written next, in one transaction.
    part: Vec<Bucket>,
    buckets: MemoryTier,
    events: VecDeque<Event>,
}

/// The data that the thread takes from the queue.
#[derive(Debug, Default)]
struct Delivery {
    pending: Pending,
    /// The inode of a database file in which a reader has found damage.
    damaged: Option<u64>,
    /// Whether the thread ends after this delivery.
    is_last: bool,
    /// The channel that is notified when everything is written.
    done: Option<SyncSender<()>>,
    /// The time at which the data is due to be written.
    write_at: Option<Instant>,
}

/// The writer thread's queue. Adding to the queue never waits for the disk, even if the disk hangs.
#[derive(Debug, Default)]
struct Inbox {
    delivery: Mutex<Delivery>,
    changed: Condvar,
}

impl Pending {
    fn add_event(&mut self, event: Event) {
        self.events.push_back(event);
        if self.events.len() > MAX_QUEUED_EVENTS {
            let of_process = |event: &Event| {
                matches!(
                    event.what,
                    EventKind::ProcessStarted(_) | EventKind::ProcessEnded(_)
                )
            };
            self.events
                .remove(self.events.iter().position(of_process).unwrap_or(0));
        }
    }

    /// Returns the oldest waiting buckets, which are the next to be written. Returns an empty list
    /// if no buckets are waiting.
    fn load_next_part(&mut self) -> &mut Vec<Bucket> {
        if self.part.is_empty() {
            self.part = self.buckets.take_oldest_buckets();
        }
        &mut self.part
    }

    /// Returns the start of the oldest waiting bucket.
    fn oldest_ms(&self) -> Option<u64> {
        self.part
            .first()
            .map(|bucket| bucket.at_ms)
            .or_else(|| Some(self.buckets.time_range_ms()?.0))
    }

    /// Removes the buckets for which `is_kept` returns `false`.
    fn retain_buckets(&mut self, mut is_kept: impl FnMut(&Bucket) -> bool) {
        let mut kept = MemoryTier::default();
        loop {
            let part = std::mem::take(self.load_next_part());
            if part.is_empty() {
                break;
            }
            part.into_iter()
                .filter(&mut is_kept)
                .for_each(|bucket| kept.push(bucket));
        }
        self.buckets = kept;
    }

    /// Appends the newer buckets and events.
    fn append(&mut self, mut newer: Self) {
        newer.retain_buckets(|bucket| {
            self.buckets.push(bucket.clone());
            false
        });
        newer
            .events
            .into_iter()
            .for_each(|event| self.add_event(event));
    }
}

impl Inbox {
    /// Ends the thread after everything has been written, and then notifies `done`.
    fn request_end(&self, done: Option<SyncSender<()>>) {
        self.add_to_delivery(Duration::ZERO, |delivery| {
            (delivery.is_last, delivery.done) = (true, done);
        });
    }

    /// Waits until data is due to be written, but no longer than `most`.
    fn wait_for_data(&self, most: Duration) -> Delivery {
        let latest = Instant::now() + most;
        let mut delivery = self.lock();
        loop {
            let rest = delivery
                .write_at
                .unwrap_or(latest)
                .min(latest)
                .saturating_duration_since(Instant::now());
            if rest.is_zero() {
                return std::mem::take(&mut *delivery);
            }
            delivery = self
                .changed
                .wait_timeout(delivery, rest)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
    }

    fn add_to_delivery(&self, wait: Duration, add: impl FnOnce(&mut Delivery)) {
        let mut delivery = self.lock();
        let write_at = Instant::now() + wait;
        delivery.write_at = Some(
            delivery
                .write_at
                .map_or(write_at, |known| known.min(write_at)),
        );
        add(&mut delivery);
        self.changed.notify_one();
    }

    fn lock(&self) -> MutexGuard<'_, Delivery> {
        self.delivery.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Removes the waiting buckets and events for whose time a row is already on disk. This is needed
/// when this process takes over writing from another process that has read the same GPUs. It is not
/// enough to compare with the newest row, because the other process's clock may have been wrong.
/// Ongoing conditions are kept, and so are this process's own marks, cells and runs.
fn remove_stored_entries(
    pending: &mut Pending,
    database: &Database,
) -> Result<(), rusqlite::Error> {
    let mut open: Vec<ConditionSpan> = Vec::new();
    let mut failed = Ok(());
    let mut is_known = |at_ms: u64| match database.has_bucket(at_ms / BUCKET_MS * BUCKET_MS) {
        Ok(is_known) => is_known,
        Err(error) => {
            failed = Err(error);
            false
        }
    };
    pending.retain_buckets(|bucket| {
        let is_new = !is_known(bucket.at_ms);
        for condition in bucket.conditions.iter().filter(|_| !is_new) {
            open.retain(|known| !known.is_same_condition(condition));
            open.extend(condition.to_ms.is_none().then(|| condition.clone()));
        }
        is_new
    });
    database.run_in_transaction(|database| {
        open.iter()
            .try_for_each(|condition| database.add_condition(condition))
    })?;
    let mut kept = Vec::new();
    for event in pending.events.drain(..) {
        let is_own = match &event.what {
            EventKind::Mark(_) | EventKind::Cell(_) => true,
            EventKind::RunBegan(run) | EventKind::RunStep(run) | EventKind::RunEnded(run) => {
                !database.has_run(&run.run)?
            }
            _ => false,
        };
        if is_own || !is_known(event.at_ms) {
            kept.push(event);
        }
    }
    pending.events.extend(kept);
    failed
}
