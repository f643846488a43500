//! The writer thread's queue. Adding to the queue never waits for the disk, even if the disk hangs.

use std::{
    collections::VecDeque,
    sync::{Condvar, Mutex, MutexGuard, PoisonError, mpsc::SyncSender},
    time::{Duration, Instant},
};

use gpumon_probe::model::{Event, EventKind};

use crate::{bucket::Bucket, memory::MemoryTier};

/// The maximum number of events in the queue while the disk does not work. Process events are
/// dropped first.
const MAX_EVENTS: usize = 4000;

/// The longest time that events wait before they are written.
const MAX_EVENT_WAIT: Duration = Duration::from_secs(10);

/// The data that waits to be written. Buckets are compressed and limited as in [`MemoryTier`].
#[derive(Debug, Default)]
pub(super) struct Pending {
    /// The oldest buckets, which are the next to be written in one transaction.
    part: Vec<Bucket>,
    buckets: MemoryTier,
    pub(super) events: VecDeque<Event>,
}

/// The data that the thread takes from the queue.
#[derive(Debug, Default)]
pub(super) struct Delivery {
    pub(super) pending: Pending,
    /// The inode of a database file in which a reader has found damage.
    pub(super) damaged: Option<u64>,
    /// Whether the thread ends after this delivery.
    pub(super) is_last: bool,
    /// The channel that is notified when everything is written.
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
        if self.events.len() > MAX_EVENTS {
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
    pub(super) fn next_part(&mut self) -> &mut Vec<Bucket> {
        if self.part.is_empty() {
            self.part = self.buckets.take_oldest();
        }
        &mut self.part
    }

    /// Returns the buckets that [`Self::next_part`] last returned.
    pub(super) fn part(&self) -> &[Bucket] {
        &self.part
    }

    /// Removes the current part and the events after they have been written.
    pub(super) fn forget_part(&mut self) {
        self.part.clear();
        self.events.clear();
    }

    /// Returns the start of the oldest waiting bucket.
    pub(super) fn oldest_ms(&self) -> Option<u64> {
        self.part
            .first()
            .map(|bucket| bucket.at_ms)
            .or_else(|| Some(self.buckets.time_range_ms()?.0))
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

    /// Appends the newer buckets and events.
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
        self.add_to_delivery(Duration::ZERO, |delivery| {
            delivery.pending.buckets.push(bucket);
        });
    }

    pub(super) fn add_event(&self, event: Event) {
        self.add_to_delivery(MAX_EVENT_WAIT, |delivery| delivery.pending.add_event(event));
    }

    /// Reports that the database file with this inode is damaged.
    pub(super) fn report_damage(&self, inode: u64) {
        self.add_to_delivery(Duration::ZERO, |delivery| delivery.damaged = Some(inode));
    }

    /// Ends the thread after everything has been written, and then notifies `done`.
    pub(super) fn end(&self, done: Option<SyncSender<()>>) {
        self.add_to_delivery(Duration::ZERO, |delivery| {
            (delivery.is_last, delivery.done) = (true, done);
        });
    }

    /// Waits until data is due to be written, but no longer than `most`.
    pub(super) fn wait_for_data(&self, most: Duration) -> Delivery {
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
