//! What the thread does.

use std::{
    fs::{self, File},
    os::unix::fs::MetadataExt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use gpumon_probe::model::now_ms;

use super::{
    Restored, Settings, Status,
    folder::{Refusal, lock},
    inbox::{Inbox, Pending},
};
use crate::{
    bucket::{BUCKET_MS, Bucket},
    database::{Database, DatabaseError, Devices, EVENTS, FILE, Limits, RolledUp},
    grid::Grid,
    memory::REACH_MS,
    wanted::Wanted,
};

const RETRY: Duration = Duration::from_mins(1);

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

type Restore = Box<dyn FnOnce(Restored) + Send>;

pub(super) struct WriterThread {
    settings: Settings,
    status: Arc<Mutex<Status>>,
    open: Option<Open>,
    is_readable: bool,
    pending: Pending,
    /// The oldest of what was pending, which is written at once.
    part: Vec<Bucket>,
    /// When what failed is tried again.
    retry_at: Option<Instant>,
    /// When old rows are deleted next.
    forget_at: Instant,
    /// Gets what was there, of so many milliseconds.
    restore: Option<(Restore, u64)>,
    tell: Box<dyn Fn(&str) + Send>,
}

/// What is wrong, for people.
type Problem = String;

impl WriterThread {
    pub(super) fn new(
        settings: Settings,
        status: &Arc<Mutex<Status>>,
        restore: (Restore, u64),
        tell: Box<dyn Fn(&str) + Send>,
    ) -> Self {
        Self {
            settings,
            status: Arc::clone(status),
            open: None,
            is_readable: false,
            pending: Pending::default(),
            part: Vec::new(),
            retry_at: None,
            forget_at: Instant::now(),
            restore: Some(restore),
            tell,
        }
    }

    pub(super) fn run(&mut self, inbox: &Inbox) {
        self.work();
        loop {
            let delivery = inbox.wait(RETRY);
            self.pending.append(delivery.pending);
            if delivery.is_last {
                self.retry_at = None;
            }
            self.work();
            if delivery.is_last {
                // Closed, the file is whole without the others beside it.
                self.open = None;
                if let Some(done) = delivery.done {
                    let _ = done.send(());
                }
                return;
            }
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
            let mut status = self.status();
            status.is_readable = self.is_readable;
            std::mem::replace(&mut status.problem, problem.clone())
        };
        match (&problem, told) {
            (Some(problem), told) if told.as_ref() != Some(problem) => (self.tell)(problem),
            (None, Some(_)) => (self.tell)(&format!("history is written to {} again", self.folder())),
            _ => {}
        }
    }

    fn status(&self) -> MutexGuard<'_, Status> {
        self.status.lock().unwrap_or_else(PoisonError::into_inner)
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
        let opened = Database::open(&self.settings.folder);
        let opened = match opened {
            Err(error) if error.is_corrupt() => {
                self.move_aside()?;
                Database::open(&self.settings.folder)
            }
            opened => opened,
        };
        let database = opened.map_err(|error| self.failed(&error))?;
        self.is_readable = self.restore(&database);
        let prepared = (|| {
            database.end_what_was_left_open()?;
            Ok::<_, rusqlite::Error>((Devices::of(&database)?, database.rolled_up()?))
        })();
        let (devices, rolled_up) = prepared.map_err(|error| self.failed(&error.into()))?;
        let inode = fs::metadata(&path).map(|file| file.ino()).map_err(|error| self.problem(&error.to_string()))?;
        self.open = Some(Open { database, devices, rolled_up, inode, _lock: lock });
        Ok(())
    }

    /// Hands over what the last minutes were, once; whether it could be read.
    fn restore(&mut self, database: &Database) -> bool {
        let Some((_, reach_ms)) = self.restore else { return true };
        let now_ms = now_ms();
        let mut grid = Grid::new(now_ms.saturating_sub(reach_ms), now_ms, BUCKET_MS, Wanted::all());
        let events = database.events(0, now_ms, EVENTS);
        let is_read = database.add_to(&mut grid, 0).is_ok();
        if is_read && let Some((restore, _)) = self.restore.take() {
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

    /// Writes all that waits, the oldest first: what is written is told part by part.
    fn write(&mut self) -> Result<(), Problem> {
        loop {
            if self.part.is_empty() {
                self.part = self.pending.buckets.take_oldest();
            }
            let is_due = Instant::now() >= self.forget_at;
            if self.part.is_empty() && self.pending.events.is_empty() && !is_due {
                return Ok(());
            }
            self.write_part(is_due)?;
        }
    }

    /// Writes a part, and deletes old rows where that is due.
    fn write_part(&mut self, is_due: bool) -> Result<(), Problem> {
        let Some(open) = &mut self.open else { return Ok(()) };
        let (buckets, events) = (&self.part, &self.pending.events);
        let newest_ms = buckets.last().map(|bucket| bucket.at_ms + BUCKET_MS);
        let limits = Limits { size_bytes: self.settings.size_bytes };
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
                self.part.clear();
                self.pending.events.clear();
                if is_due {
                    self.forget_at = Instant::now() + RETRY;
                }
                if let Some(written_ms) = newest_ms {
                    self.status().written_ms = written_ms;
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
