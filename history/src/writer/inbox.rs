//! The way to the thread. Whoever hands something over waits for no disk, however long that hangs.

use std::{
    collections::VecDeque,
    sync::{Condvar, Mutex, MutexGuard, PoisonError, mpsc::SyncSender},
    time::{Duration, Instant},
};

use gpumon_probe::model::{Event, EventKind};

use crate::{bucket::Bucket, memory::MemoryTier};

/// So many events wait for a disk that does not work. Those of processes give way to others.
const EVENTS: usize = 4000;

/// What there is to write is written after this time at the latest.
const EVENTS_WAIT: Duration = Duration::from_secs(10);

/// What waits for the disk: buckets of as many hours as memory keeps, packed as there.
#[derive(Debug, Default)]
pub(super) struct Pending {
    /// The oldest, which are written at once.
    part: Vec<Bucket>,
    buckets: MemoryTier,
    pub(super) events: VecDeque<Event>,
}

/// What the thread finds when it looks.
#[derive(Debug, Default)]
pub(super) struct Delivery {
    pub(super) pending: Pending,
    /// Whoever reads has found this file damaged.
    pub(super) damaged: Option<u64>,
    /// There will be nothing more.
    pub(super) is_last: bool,
    /// Who waits until all of it is written.
    pub(super) done: Option<SyncSender<()>>,
    /// When it is to be written.
    write_at: Option<Instant>,
}

#[derive(Debug, Default)]
pub(super) struct Inbox {
    delivery: Mutex<Delivery>,
    changed: Condvar,
}

impl Pending {
    pub(super) fn add_event(&mut self, event: Event) {
        self.events.push_back(event);
        if self.events.len() > EVENTS {
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

    /// The buckets to be written next, the oldest; none where nothing waits.
    pub(super) fn next_part(&mut self) -> &mut Vec<Bucket> {
        if self.part.is_empty() {
            self.part = self.buckets.take_oldest();
        }
        &mut self.part
    }

    /// Those of [`Self::next_part`], once it was asked for.
    pub(super) fn part(&self) -> &[Bucket] {
        &self.part
    }

    /// Forgets what has been written: the part, and the events.
    pub(super) fn forget_part(&mut self) {
        self.part.clear();
        self.events.clear();
    }

    /// When the oldest bucket begins.
    pub(super) fn oldest_ms(&self) -> Option<u64> {
        self.part
            .first()
            .map(|bucket| bucket.at_ms)
            .or_else(|| Some(self.buckets.reach_ms()?.0))
    }

    /// Keeps those buckets alone.
    pub(super) fn retain(&mut self, mut is_kept: impl FnMut(&Bucket) -> bool) {
        let mut kept = MemoryTier::default();
        loop {
            let part = std::mem::take(self.next_part());
            if part.is_empty() {
                break;
            }
            part.into_iter()
                .filter(&mut is_kept)
                .for_each(|bucket| kept.push(bucket));
        }
        self.buckets = kept;
    }

    /// Adds what has come since.
    pub(super) fn append(&mut self, mut newer: Self) {
        newer.retain(|bucket| {
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
    pub(super) fn add_bucket(&self, bucket: Bucket) {
        self.add(Duration::ZERO, |delivery| {
            delivery.pending.buckets.push(bucket);
        });
    }

    pub(super) fn add_event(&self, event: Event) {
        self.add(EVENTS_WAIT, |delivery| delivery.pending.add_event(event));
    }

    /// Says that a file is damaged, by its inode.
    pub(super) fn add_damage(&self, inode: u64) {
        self.add(Duration::ZERO, |delivery| delivery.damaged = Some(inode));
    }

    /// Says that there is nothing more.
    pub(super) fn end(&self, done: Option<SyncSender<()>>) {
        self.add(Duration::ZERO, |delivery| {
            (delivery.is_last, delivery.done) = (true, done);
        });
    }

    /// Waits until something is to be written, but no longer than this.
    pub(super) fn wait(&self, most: Duration) -> Delivery {
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

    fn add(&self, wait: Duration, add: impl FnOnce(&mut Delivery)) {
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
