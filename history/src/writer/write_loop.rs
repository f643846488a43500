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
    Restored, Settings, Status,
    aside::{forget_damaged, move_aside, wal_bytes},
    folder::{Refusal, lock},
    inbox::{Inbox, Pending},
    take_over::forget_known,
};
use crate::{
    bucket::BUCKET_MS,
    database::{
        self, Allowance, Database, DatabaseError, Devices, EVENTS, FILE, Limits, RolledUp, Salvage,
    },
    grid::Grid,
    memory::REACH_MS,
    wanted::Wanted,
};

const RETRY: Duration = Duration::from_mins(1);

/// The longest time for which salvage delays new data.
const SALVAGE: Duration = Duration::from_millis(200);
const SALVAGE_PAUSE: Duration = Duration::from_secs(1);

/// A database that is open for writing.
struct Open {
    database: Database,
    devices: Devices,
    rolled_up: RolledUp,
}

/// The reason why nothing is written.
#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error("{0}")]
    Refused(String),
    #[error(transparent)]
    Database(#[from] DatabaseError),
    #[error(transparent)]
    File(#[from] io::Error),
}

type Restore = Box<dyn FnOnce(Restored) + Send>;

pub(super) struct WriterThread {
    settings: Settings,
    /// The size limit on disk, which can change.
    size_bytes: Arc<AtomicU64>,
    status: Arc<Mutex<Status>>,
    /// The lock on the directory while this process writes to it.
    lock: Option<File>,
    open: Option<Open>,
    is_readable: bool,
    /// The salvage of a damaged file, and its name.
    salvage: Option<(Salvage, String)>,
    pending: Pending,
    /// The newest bucket that is known to be on disk.
    newest_ms: Option<u64>,
    /// Whether another process has written to the directory since then.
    was_refused: bool,
    /// The time of the next attempt after an error.
    retry_at: Option<Instant>,
    /// Whether a reader has found the file damaged.
    is_damaged: bool,
    /// The time at which old rows are deleted next.
    forget_at: Instant,
    /// The amount of history that may be deleted. It was last increased at `allowed_at`.
    allowance: Allowance,
    allowed_at: Instant,
    /// The callback that receives the stored history, and the time that it covers in milliseconds.
    restore: Option<(Restore, u64)>,
    tell: Box<dyn Fn(&str) + Send>,
}

impl WriterThread {
    pub(super) fn new(
        settings: Settings,
        size_bytes: &Arc<AtomicU64>,
        status: &Arc<Mutex<Status>>,
        restore: (Restore, u64),
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
        self.work();
        loop {
            let is_salvaging = self.salvage.is_some() && self.open.is_some();
            let delivery = inbox.wait(if is_salvaging { SALVAGE_PAUSE } else { RETRY });
            self.pending.append(delivery.pending);
            self.is_damaged = delivery
                .damaged
                .is_some_and(|inode| self.own_inode() == Some(inode));
            if delivery.is_last {
                self.retry_at = None;
            }
            self.work();
            if delivery.is_last {
                // A closed database is complete without its companion files.
                self.close();
                if let Some(done) = delivery.done {
                    let _ = done.send(());
                }
                return;
            }
        }
    }

    /// Writes all waiting data, unless an error is to be retried later.
    fn work(&mut self) {
        if self.retry_at.is_some_and(|at| Instant::now() < at) {
            return;
        }
        let mut done = if self.is_damaged {
            self.begin_anew()
        } else {
            self.open_and_write()
        };
        if let Err(Failure::Database(error)) = &done
            && error.is_corrupt()
            && self.lock.is_some()
        {
            done = self.begin_anew();
        }
        if done.is_err() {
            // The cached devices and the progress of the tiers belong to the failed transaction.
            self.close();
        }
        self.retry_at = done.is_err().then(|| Instant::now() + RETRY);
        let problem = done.err().map(|failure| self.problem(&failure.to_string()));
        let told = {
            let mut status = self.status();
            status.is_readable = self.is_readable;
            std::mem::replace(&mut status.problem, problem.clone())
        };
        match (&problem, told) {
            (Some(problem), told) if told.as_ref() != Some(problem) => (self.tell)(problem),
            (None, Some(_)) => {
                (self.tell)(&format!("history is written to {} again", self.folder()));
            }
            _ => {}
        }
    }

    fn open_and_write(&mut self) -> Result<(), Failure> {
        self.open()?;
        self.write()?;
        self.salvage()
    }

    /// Moves a damaged file aside and creates a new one.
    fn begin_anew(&mut self) -> Result<(), Failure> {
        (self.open, self.is_readable, self.is_damaged) = (None, false, false);
        self.move_aside()?;
        self.open_and_write()
    }

    fn close(&mut self) {
        (self.open, self.lock) = (None, None);
    }

    fn own_inode(&self) -> Option<u64> {
        self.open.as_ref()?.database.inode()
    }

    fn status(&self) -> MutexGuard<'_, Status> {
        self.status.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn folder(&self) -> String {
        self.settings.folder.display().to_string()
    }

    fn problem(&self, why: &str) -> String {
        let (folder, hours) = (self.folder(), REACH_MS / 3_600_000);
        format!(
            "history is not written to {folder}: {why}. It is kept in memory for {hours} hours; retrying every minute"
        )
    }

    /// Opens the database, or opens it again if the file in the directory is another one.
    fn open(&mut self) -> Result<(), Failure> {
        if self.open.is_some() {
            if self.own_inode().is_some()
                && self.own_inode() == database::inode(&self.settings.folder)
            {
                return Ok(());
            }
            self.close();
            self.is_readable = false;
        }
        if self.lock.is_none() {
            let locked = lock(&self.settings.folder).map_err(
                |Refusal {
                     why,
                     is_readable,
                     is_anothers,
                 }| {
                    self.was_refused |= is_anothers;
                    self.is_readable = is_readable && self.can_read();
                    Failure::Refused(why)
                },
            );
            self.lock = Some(locked?);
        }
        let opened = self
            .open_to_write()
            .inspect_err(|_| self.is_readable = self.can_read())?;
        (self.open, self.is_readable) = (Some(opened), true);
        Ok(())
    }

    fn open_to_write(&mut self) -> Result<Open, DatabaseError> {
        let database = Database::open(&self.settings.folder)?;
        self.restore(&database)?;
        let devices = Devices::of(&database)?;
        let newest_ms = devices.newest_ms().unwrap_or(0);
        // The progress is read before anything is written, so that a damaged file stays unchanged.
        let rolled_up = if self.salvage.is_some() && newest_ms == 0 {
            RolledUp::beginning_at(self.pending.oldest_ms().unwrap_or_else(now_ms))
        } else {
            database.rolled_up()?
        };
        let is_others =
            self.was_refused || self.newest_ms.is_some_and(|known_ms| newest_ms > known_ms);
        // Conditions of this process continue after a problem of the disk. Only those of another
        // process are ended.
        if self.newest_ms.is_none() || is_others {
            database.end_what_was_left_open()?;
        }
        if is_others {
            forget_known(&mut self.pending, &database)?;
        }
        (self.newest_ms, self.was_refused) = (Some(newest_ms), false);
        Ok(Open {
            database,
            devices,
            rolled_up,
        })
    }

    /// Returns `true` if the history can be read although it cannot be written.
    fn can_read(&mut self) -> bool {
        Database::open_to_read(&self.settings.folder)
            .is_ok_and(|database| self.restore(&database).is_ok())
    }

    /// Passes the history of the last minutes to the callback, once.
    fn restore(&mut self, database: &Database) -> Result<(), DatabaseError> {
        let Some((_, reach_ms)) = self.restore else {
            return Ok(());
        };
        let now_ms = now_ms();
        let mut grid = Grid::new(
            now_ms.saturating_sub(reach_ms),
            now_ms,
            BUCKET_MS,
            Wanted::all(),
        );
        let events = database.events(0, now_ms, EVENTS)?;
        database.add_to(&mut grid, 0)?;
        if let Some((restore, _)) = self.restore.take() {
            restore(Restored { grid, events });
        }
        Ok(())
    }

    fn move_aside(&mut self) -> Result<(), Failure> {
        let aside = move_aside(&self.settings.folder)?;
        (self.tell)(&format!(
            "{FILE} in {} was damaged: it is kept as {aside}, and a new one was created",
            self.folder()
        ));
        self.salvage = Salvage::new(&self.settings.folder.join(&aside), now_ms())
            .map(|salvage| (salvage, aside));
        Ok(())
    }

    /// Copies some more rows of a damaged file.
    fn salvage(&mut self) -> Result<(), Failure> {
        let (Some((salvage, aside)), Some(open)) = (&mut self.salvage, &self.open) else {
            return Ok(());
        };
        let added = salvage
            .step(&open.database, SALVAGE)
            .map_err(DatabaseError::from)?;
        if let Some(added) = added {
            let again = open
                .database
                .roll_up_again(&open.rolled_up, salvage.begun_ms());
            (self.tell)(&format!(
                "{added} rows of {aside} could be read and were copied to {FILE}"
            ));
            self.salvage = None;
            again.map_err(DatabaseError::from)?;
        }
        Ok(())
    }

    /// Writes all waiting data, the oldest first. The status is updated after each part.
    fn write(&mut self) -> Result<(), Failure> {
        loop {
            let is_due = Instant::now() >= self.forget_at;
            if self.pending.next_part().is_empty() && self.pending.events.is_empty() && !is_due {
                return Ok(());
            }
            self.write_part(is_due)?;
        }
    }

    /// Writes one part, and deletes old rows if this is due.
    fn write_part(&mut self, is_due: bool) -> Result<(), Failure> {
        let Some(open) = &mut self.open else {
            return Ok(());
        };
        let (buckets, events) = (self.pending.part(), &self.pending.events);
        let newest_ms = buckets.last().map(|bucket| bucket.at_ms + BUCKET_MS);
        let Settings { folder, .. } = &self.settings;
        let size_bytes = self.size_bytes.load(Ordering::Relaxed);
        // A reader can make the log grow, for which no rows should be deleted.
        let wal_bytes = wal_bytes(folder).min(size_bytes / 10);
        let limits = Limits {
            size_bytes: size_bytes - wal_bytes,
        };
        if is_due {
            self.allowance
                .add(std::mem::replace(&mut self.allowed_at, Instant::now()).elapsed());
        }
        let allowance = &mut self.allowance;
        let written: Result<(), rusqlite::Error> = open.database.at_once(|database| {
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
                joined
                    .iter()
                    .try_for_each(|at_ms| database.roll_up_again(&open.rolled_up, *at_ms))?;
            }
            if is_due {
                database.forget(now_ms(), allowance, limits)
            } else {
                Ok(())
            }
        });
        written.map_err(DatabaseError::from)?;
        self.pending.forget_part();
        if is_due {
            self.forget_at = Instant::now() + RETRY;
            let in_use = self.salvage.as_ref().map(|(_, aside)| &**aside);
            forget_damaged(folder, size_bytes, in_use)?;
        }
        if let Some(written_ms) = newest_ms {
            self.newest_ms = self.newest_ms.max(Some(written_ms - BUCKET_MS));
            self.status().written_ms = written_ms;
        }
        Ok(())
    }
}
