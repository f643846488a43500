//! The writer thread.

use std::{
    fs::File,
    io,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use gpumon_probe::model::now_ms;

use super::{
    Inbox, Pending, RestoredHistory, WriterSettings, WriterStatus,
    folder::{LockRefusal, delete_damaged_files, lock_folder, rename_damaged_file, wal_bytes},
    remove_stored_entries,
};
use crate::{
    bucket::BUCKET_MS,
    database::{
        self, Allowance, Database, DatabaseError, FILE_NAME, MAX_EVENTS, RollUpProgress, Salvage,
        StoredDevices,
    },
    grid::Grid,
    memory::REACH_MS,
    span::MetricSelection,
};

const RETRY_INTERVAL: Duration = Duration::from_mins(1);

/// The longest time for which salvage delays new data.
const SALVAGE_STEP: Duration = Duration::from_millis(200);
const SALVAGE_PAUSE: Duration = Duration::from_secs(1);

/// A database that is open for writing.
struct OpenDatabase {
    database: Database,
    devices: StoredDevices,
    rolled_up: RollUpProgress,
}

/// The reason why data cannot be written.
#[derive(Debug, thiserror::Error)]
enum WriteFailure {
    #[error("{0}")]
    Refused(String),
    #[error(transparent)]
    Database(#[from] DatabaseError),
    #[error(transparent)]
    File(#[from] io::Error),
}

type RestoreCallback = Box<dyn FnOnce(RestoredHistory) + Send>;

pub(super) struct WriterThread {
    settings: WriterSettings,
    /// The size limit on disk, which can change while the thread runs.
    size_bytes: Arc<AtomicU64>,
    status: Arc<Mutex<WriterStatus>>,
    /// The lock on the directory while this process writes to it.
    lock: Option<File>,
    open: Option<OpenDatabase>,
    is_readable: bool,
    /// The salvage of a damaged file, and the file's name.
    salvage: Option<(Salvage, String)>,
    pending: Pending,
    /// The start of the newest bucket on disk, as far as this process knows.
    newest_ms: Option<u64>,
    /// Whether another process has written to the directory since this process last opened the
    /// database.
    was_refused: bool,
    /// The time of the next attempt after an error.
    retry_at: Option<Instant>,
    /// Whether a reader has reported that the file is damaged.
    is_damaged: bool,
    /// The time at which old rows are next deleted.
    forget_at: Instant,
    /// How much history may be deleted because of its age. It was last increased at `allowed_at`.
    allowance: Allowance,
    allowed_at: Instant,
    /// The callback that receives the stored history, and how far back that history goes, in
    /// milliseconds.
    restore: Option<(RestoreCallback, u64)>,
    tell: Box<dyn Fn(&str) + Send>,
}

impl WriterThread {
    pub(super) fn new(
        settings: WriterSettings,
        size_bytes: &Arc<AtomicU64>,
        status: &Arc<Mutex<WriterStatus>>,
        restore: (RestoreCallback, u64),
        tell: Box<dyn Fn(&str) + Send>,
    ) -> Self {
        Self {
            settings,
            size_bytes: Arc::clone(size_bytes),
            status: Arc::clone(status),
            lock: None,
            open: None,
            is_readable: false,
            salvage: None,
            pending: Pending::default(),
            newest_ms: None,
            was_refused: false,
            retry_at: None,
            is_damaged: false,
            forget_at: Instant::now(),
            allowance: Allowance::default(),
            allowed_at: Instant::now(),
            restore: Some(restore),
            tell,
        }
    }

    pub(super) fn run(&mut self, inbox: &Inbox) {
        self.write_pending();
        loop {
            let is_salvaging = self.salvage.is_some() && self.open.is_some();
            let delivery = inbox.wait_for_data(if is_salvaging {
                SALVAGE_PAUSE
            } else {
                RETRY_INTERVAL
            });
            self.pending.append(delivery.pending);
            self.is_damaged = delivery
                .damaged
                .is_some_and(|inode| self.open_database_inode() == Some(inode));
            if delivery.is_last {
                self.retry_at = None;
            }
            self.write_pending();
            if delivery.is_last {
                // After the last delivery, the database is closed, so that it is complete without
                // its companion files.
                self.close();
                if let Some(done) = delivery.done {
                    let _ = done.send(());
                }
                return;
            }
        }
    }

    /// Writes all waiting data, unless an earlier error must be retried later.
    fn write_pending(&mut self) {
        if self.retry_at.is_some_and(|at| Instant::now() < at) {
            return;
        }
        let mut done = if self.is_damaged {
            self.replace_damaged()
        } else {
            self.open_and_write()
        };
        if let Err(WriteFailure::Database(error)) = &done
            && error.is_corrupt()
            && self.lock.is_some()
        {
            done = self.replace_damaged();
        }
        if done.is_err() {
            // The cached devices and the cached tier progress may include changes of the failed
            // transaction. The database is therefore closed and opened again, which resets them.
            self.close();
        }
        self.retry_at = done.is_err().then(|| Instant::now() + RETRY_INTERVAL);
        let problem = done
            .err()
            .map(|failure| self.describe_problem(&failure.to_string()));
        let reported = {
            let mut status = self.lock_status();
            status.is_readable = self.is_readable;
            std::mem::replace(&mut status.problem, problem.clone())
        };
        match (&problem, reported) {
            (Some(problem), reported) if reported.as_ref() != Some(problem) => (self.tell)(problem),
            (None, Some(_)) => {
                (self.tell)(&format!(
                    "history is written to {} again",
                    self.folder_text()
                ));
            }
            _ => {}
        }
    }

    fn open_and_write(&mut self) -> Result<(), WriteFailure> {
        self.ensure_open()?;
        self.write_all_parts()?;
        self.run_salvage_step()
    }

    /// Moves a damaged file aside and creates a new one.
    fn replace_damaged(&mut self) -> Result<(), WriteFailure> {
        (self.open, self.is_readable, self.is_damaged) = (None, false, false);
        self.move_damaged_file_aside()?;
        self.open_and_write()
    }

    fn close(&mut self) {
        (self.open, self.lock) = (None, None);
    }

    fn open_database_inode(&self) -> Option<u64> {
        self.open.as_ref()?.database.inode()
    }

    fn lock_status(&self) -> MutexGuard<'_, WriterStatus> {
        self.status.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn folder_text(&self) -> String {
        self.settings.folder.display().to_string()
    }

    fn describe_problem(&self, why: &str) -> String {
        let (folder, hours) = (self.folder_text(), REACH_MS / 3_600_000);
        format!(
            "history is not written to {folder}: {why}. gpumon keeps {hours} hours of history in \
             memory and retries every minute"
        )
    }

    /// Opens the database if it is closed, or if the file in the directory has been replaced.
    fn ensure_open(&mut self) -> Result<(), WriteFailure> {
        if self.open.is_some() {
            if self.open_database_inode().is_some()
                && self.open_database_inode() == database::read_inode(&self.settings.folder)
            {
                return Ok(());
            }
            self.close();
            self.is_readable = false;
        }
        if self.lock.is_none() {
            let locked = lock_folder(&self.settings.folder).map_err(
                |LockRefusal {
                     why,
                     is_readable,
                     is_anothers,
                 }| {
                    self.was_refused |= is_anothers;
                    self.is_readable = is_readable && self.restore_if_readable();
                    WriteFailure::Refused(why)
                },
            );
            self.lock = Some(locked?);
        }
        let opened = self
            .open_to_write()
            .inspect_err(|_| self.is_readable = self.restore_if_readable())?;
        (self.open, self.is_readable) = (Some(opened), true);
        Ok(())
    }

    fn open_to_write(&mut self) -> Result<OpenDatabase, DatabaseError> {
        let database = Database::open(&self.settings.folder)?;
        self.restore(&database)?;
        let devices = StoredDevices::load(&database)?;
        let newest_ms = devices.newest_bucket_ms().unwrap_or(0);
        // The progress is read before anything is written, so that a damaged file is not changed.
        let rolled_up = if self.salvage.is_some() && newest_ms == 0 {
            RollUpProgress::new_from(self.pending.oldest_ms().unwrap_or_else(now_ms))
        } else {
            database.roll_up_progress()?
        };
        let is_others =
            self.was_refused || self.newest_ms.is_some_and(|known_ms| newest_ms > known_ms);
        // After a disk problem, this process's own conditions continue. Only conditions from
        // another process are ended.
        if self.newest_ms.is_none() || is_others {
            database.end_open_conditions_and_runs()?;
        }
        if is_others {
            remove_stored_entries(&mut self.pending, &database)?;
        }
        (self.newest_ms, self.was_refused) = (Some(newest_ms), false);
        Ok(OpenDatabase {
            database,
            devices,
            rolled_up,
        })
    }

    /// Returns `true` if the history can be read even though it cannot be written.
    fn restore_if_readable(&mut self) -> bool {
        Database::open_to_read(&self.settings.folder)
            .is_ok_and(|database| self.restore(&database).is_ok())
    }

    /// Passes the stored history to the `restore` callback, if that has not been done yet.
    fn restore(&mut self, database: &Database) -> Result<(), DatabaseError> {
        let Some((_, reach_ms)) = self.restore else {
            return Ok(());
        };
        let now_ms = now_ms();
        let mut grid = Grid::new(
            now_ms.saturating_sub(reach_ms),
            now_ms,
            BUCKET_MS,
            MetricSelection::select_all(),
        );
        let events = database.read_events(0, now_ms, MAX_EVENTS)?;
        database.add_to_grid(&mut grid, 0)?;
        if let Some((restore, _)) = self.restore.take() {
            restore(RestoredHistory { grid, events });
        }
        Ok(())
    }

    fn move_damaged_file_aside(&mut self) -> Result<(), WriteFailure> {
        let aside = rename_damaged_file(&self.settings.folder)?;
        (self.tell)(&format!(
            "{FILE_NAME} in {} was damaged: it was renamed to {aside}, and a new one was created",
            self.folder_text()
        ));
        self.salvage = Salvage::new(&self.settings.folder.join(&aside), now_ms())
            .map(|salvage| (salvage, aside));
        Ok(())
    }

    /// Copies a few more rows of a damaged file.
    fn run_salvage_step(&mut self) -> Result<(), WriteFailure> {
        let (Some((salvage, aside)), Some(open)) = (&mut self.salvage, &self.open) else {
            return Ok(());
        };
        let added = salvage
            .copy_rows(&open.database, SALVAGE_STEP)
            .map_err(DatabaseError::from)?;
        if let Some(added) = added {
            let again = open
                .database
                .recreate_coarser_rows(&open.rolled_up, salvage.started_ms());
            (self.tell)(&format!(
                "{added} rows were recovered from {aside} and copied to {FILE_NAME}"
            ));
            self.salvage = None;
            again.map_err(DatabaseError::from)?;
        }
        Ok(())
    }

    /// Writes all waiting data, the oldest first. The status is updated after each part.
    fn write_all_parts(&mut self) -> Result<(), WriteFailure> {
        loop {
            let is_due = Instant::now() >= self.forget_at;
            if self.pending.load_next_part().is_empty() && self.pending.events.is_empty() && !is_due
            {
                return Ok(());
            }
            self.write_part(is_due)?;
        }
    }

    /// Writes one part, and deletes old rows if this is due.
    fn write_part(&mut self, is_due: bool) -> Result<(), WriteFailure> {
        let Some(open) = &mut self.open else {
            return Ok(());
        };
        let (buckets, events) = (&self.pending.part, &self.pending.events);
        let newest_ms = buckets.last().map(|bucket| bucket.at_ms + BUCKET_MS);
        let WriterSettings { folder, .. } = &self.settings;
        let size_bytes = self.size_bytes.load(Ordering::Relaxed);
        // A reader can make the write-ahead log grow. At most a tenth of the size limit is reserved
        // for the log. If the log grows further, no rows are deleted for that reason.
        let max_bytes = size_bytes - wal_bytes(folder).min(size_bytes / 10);
        if is_due {
            self.allowance.add_elapsed_time(
                std::mem::replace(&mut self.allowed_at, Instant::now()).elapsed(),
            );
        }
        let allowance = &mut self.allowance;
        let written: Result<(), rusqlite::Error> = open.database.run_in_transaction(|database| {
            let mut joined = Vec::new();
            for bucket in buckets {
                if database.add_bucket(bucket, &mut open.devices)? {
                    joined.push(bucket.at_ms);
                }
            }
            events
                .iter()
                .try_for_each(|event| database.add_event(event))?;
            if let Some(newest_ms) = newest_ms {
                database.roll_up(&mut open.rolled_up, newest_ms)?;
                joined.iter().try_for_each(|at_ms| {
                    database.recreate_coarser_rows(&open.rolled_up, *at_ms)
                })?;
            }
            if is_due {
                database.delete_excess_rows(now_ms(), allowance, max_bytes)
            } else {
                Ok(())
            }
        });
        written.map_err(DatabaseError::from)?;
        self.pending.part.clear();
        self.pending.events.clear();
        if is_due {
            self.forget_at = Instant::now() + RETRY_INTERVAL;
            let in_use = self.salvage.as_ref().map(|(_, aside)| &**aside);
            delete_damaged_files(folder, size_bytes, in_use)?;
        }
        if let Some(written_ms) = newest_ms {
            self.newest_ms = self.newest_ms.max(Some(written_ms - BUCKET_MS));
            self.lock_status().written_ms = written_ms;
        }
        Ok(())
    }
}
