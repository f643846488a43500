//! The queue of the writer thread. Adding to it never waits for a disk, even if the disk hangs.

use std::{
    collections::VecDeque,
    sync::{Condvar, Mutex, MutexGuard, PoisonError, mpsc::SyncSender},
    time::{Duration, Instant},
};

use gpumon_probe::model::{Event, EventKind};

use crate::{bucket::Bucket, memory::MemoryTier};

/// The maximum number of events that wait for a disk that does not work. Events of processes are
/// dropped first.
const EVENTS: usize = 4000;

/// The longest time that events wait before they are written.
const EVENTS_WAIT: Duration = Duration::from_secs(10);

/// The data that waits for the disk. Buckets are compressed and limited as in [`MemoryTier`].
#[derive(Debug, Default)]
pub(super) struct Pending {
    /// The oldest buckets, which are written next in one transaction.
    part: Vec<Bucket>,
    buckets: MemoryTier,
    pub(super) events: VecDeque<Event>,
}

/// The data that the thread takes from the queue.
#[derive(Debug, Default)]
pub(super) struct Delivery {
    pub(super) pending: Pending,
    /// The inode of a file that a reader has found damaged.
    pub(super) damaged: Option<u64>,
    /// Whether the thread ends after this delivery.
    pub(super) is_last: bool,
    /// The sender that is notified when everything is written.
    pub(super) done: Option<SyncSender<()>>,
    /// The time at which the data is written.
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

    /// Returns the buckets to be written next, the oldest. The result is empty if none are waiting.
    pub(super) fn next_part(&mut self) -> &mut Vec<Bucket> {
        if self.part.is_empty() {
            self.part = self.buckets.take_oldest();
        }
        &mut self.part
    }

    /// Returns the buckets of the last call of [`Self::next_part`].
    pub(super) fn part(&self) -> &[Bucket] {
        &self.part
    }

    /// Removes the buckets of the part and the events, which have been written.
    pub(super) fn forget_part(&mut self) {
        self.part.clear();
        self.events.clear();
    }

    /// Returns the start of the oldest bucket.
    pub(super) fn oldest_ms(&self) -> Option<u64> {
        self.part
            .first()
            .map(|bucket| bucket.at_ms)
            .or_else(|| Some(self.buckets.reach_ms()?.0))
    }

    /// Removes the buckets for which `is_kept` returns `false`.
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

    /// Adds the newer buckets and events.
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

    /// Reports that a file with this inode is damaged.
    pub(super) fn add_damage(&self, inode: u64) {
        self.add(Duration::ZERO, |delivery| delivery.damaged = Some(inode));
    }

    /// Ends the thread after everything has been written, and then notifies `done`.
    pub(super) fn end(&self, done: Option<SyncSender<()>>) {
        self.add(Duration::ZERO, |delivery| {
            (delivery.is_last, delivery.done) = (true, done);
        });
    }

    /// Waits for data to be written, but at most for this time.
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
