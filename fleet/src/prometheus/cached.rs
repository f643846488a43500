//! A cache whose values are shared by all readers. The source is read only on request, by one
//! reader at a time, and at most once per period.

use std::{
    collections::HashMap,
    hash::Hash,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use tokio::{sync::watch, time::timeout};

/// The maximum pause between two reads of a source that keeps failing.
const MAX_PAUSE: Duration = Duration::from_mins(1);

/// The last value, and the state of the read in progress.
pub(super) struct CachedValue<T>(Mutex<Slot<T>>);

struct Slot<T> {
    last: Option<Arc<T>>,
    /// The time from which the cached value is due to be read again.
    next: Instant,
    failures: u32,
    /// A channel that closes when the read in progress finishes.
    flight: Option<watch::Receiver<()>>,
}

/// A value that has just been read, and how long it stays fresh.
pub(super) struct FreshValue<T> {
    pub(super) value: Arc<T>,
    pub(super) period: Duration,
    /// Whether the source failed. The delay between attempts grows with each failure.
    pub(super) is_failure: bool,
}

impl<T> Default for CachedValue<T> {
    fn default() -> Self {
        Self(Mutex::new(Slot {
            last: None,
            next: Instant::now(),
            failures: 0,
            flight: None,
        }))
    }
}

impl<T: Send + Sync + 'static> CachedValue<T> {
    /// Returns the cached value. If it is due, it is read again first. `patience` returns the
    /// maximum time to wait for this; its argument is `true` if there is an earlier value to return
    /// after that time. Returns `None` if there is still no value after that time.
    pub(super) async fn get_or_read<F>(
        self: &Arc<Self>,
        patience: impl FnOnce(bool) -> Duration,
        read: impl FnOnce(Option<Arc<T>>) -> F,
    ) -> Option<Arc<T>>
    where
        F: Future<Output = FreshValue<T>> + Send + 'static,
    {
        let (last, flight) = self.get_last_and_refresh(read);
        let Some(mut flight) = flight else {
            return last;
        };
        // A timeout is ignored, because the earlier value is then returned.
        let _ = timeout(patience(last.is_some()), flight.changed()).await;
        self.lock_slot().last.clone()
    }

    /// Returns the cached value. If it is due, starts a read, and also returns a receiver that
    /// closes when the read finishes.
    pub(super) fn get_last_and_refresh<F>(
        self: &Arc<Self>,
        read: impl FnOnce(Option<Arc<T>>) -> F,
    ) -> (Option<Arc<T>>, Option<watch::Receiver<()>>)
    where
        F: Future<Output = FreshValue<T>> + Send + 'static,
    {
        let mut slot = self.lock_slot();
        let is_flying = slot
            .flight
            .as_ref()
            .is_some_and(|flight| flight.has_changed().is_ok());
        if !is_flying {
            if slot.last.is_some() && Instant::now() < slot.next {
                return (slot.last.clone(), None);
            }
            let (landed, flight) = watch::channel(());
            slot.flight = Some(flight);
            let (this, reading) = (Arc::clone(self), read(slot.last.clone()));
            // The read continues even if its requester has gone away, because others may be waiting
            // for the result.
            tokio::spawn(async move {
                let begin = Instant::now();
                let fresh = reading.await;
                this.store(fresh, begin);
                drop(landed);
            });
        }
        (slot.last.clone(), slot.flight.clone())
    }

    /// Stores a value whose read started at `begin`.
    fn store(&self, fresh: FreshValue<T>, begin: Instant) {
        let (mut slot, now) = (self.lock_slot(), Instant::now());
        let pause = if fresh.is_failure {
            let factor = 1 << slot.failures.min(7);
            slot.failures += 1;
            let longest = MAX_PAUSE.max(fresh.period);
            fresh.period.saturating_mul(factor).min(longest)
        } else {
            slot.failures = 0;
            // The pause is shorter than the period. A client that requests once per period then
            // gets a new value each time.
            fresh.period * 4 / 5
        };
        // After a slow read, the source is not read again for as long as the read took.
        slot.next = (begin + pause).max(now + begin.elapsed());
        slot.last = Some(fresh.value);
    }

    fn lock_slot(&self) -> std::sync::MutexGuard<'_, Slot<T>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A cache with one value per key. Only the most recently requested keys are kept.
pub(super) struct CachedByKey<K, T> {
    most: usize,
    slots: Mutex<Slots<K, T>>,
}

struct Slots<K, T> {
    clock: u64,
    all: HashMap<K, (u64, Arc<CachedValue<T>>)>,
}

impl<K: Eq + Hash + Clone, T> CachedByKey<K, T> {
    pub(super) fn new(most: usize) -> Self {
        Self {
            most,
            slots: Mutex::new(Slots {
                clock: 0,
                all: HashMap::new(),
            }),
        }
    }

    pub(super) fn get_or_create_slot(&self, key: K) -> Arc<CachedValue<T>> {
        let mut slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        slots.clock += 1;
        let now = slots.clock;
        if slots.all.len() >= self.most && !slots.all.contains_key(&key) {
            let oldest = slots
                .all
                .iter()
                .min_by_key(|(_, (used, _))| *used)
                .map(|(key, _)| key.clone());
            oldest.map(|key| slots.all.remove(&key));
        }
        let slot = slots
            .all
            .entry(key)
            .or_insert_with(|| (now, Arc::default()));
        slot.0 = now;
        Arc::clone(&slot.1)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn make_fresh_value(value: u32, is_failure: bool) -> FreshValue<u32> {
        FreshValue {
            value: Arc::new(value),
            period: SECOND,
            is_failure,
        }
    }

    #[tokio::test]
    async fn concurrent_requests_share_one_reading() {
        let (cached, count) = (
            Arc::new(CachedValue::default()),
            Arc::new(AtomicU32::new(0)),
        );
        let ask = || {
            let count = Arc::clone(&count);
            cached.get_or_read(
                |_| SECOND,
                move |_| async move {
                    tokio::time::sleep(Duration::from_millis(20)).await;
                    make_fresh_value(count.fetch_add(1, Ordering::SeqCst), false)
                },
            )
        };
        let all = futures_util::future::join_all((0..10).map(|_| ask())).await;
        assert!(all.iter().all(|value| value.as_deref() == Some(&0)));
        assert_eq!(ask().await.as_deref(), Some(&0), "its period is not over");
        assert_eq!(count.load(Ordering::SeqCst), 1);
    }

    #[tokio::test]
    async fn old_value_is_returned_while_slow_reading_continues() {
        let cached = Arc::new(CachedValue::default());
        cached.store(
            FreshValue {
                period: Duration::ZERO,
                ..make_fresh_value(1, false)
            },
            Instant::now(),
        );
        let gate = Arc::new(tokio::sync::Notify::new());
        let slow = |_| {
            let gate = Arc::clone(&gate);
            async move {
                gate.notified().await;
                make_fresh_value(2, false)
            }
        };
        let short = |_| Duration::from_millis(1);
        assert_eq!(cached.get_or_read(short, slow).await.as_deref(), Some(&1));
        gate.notify_one();
        let long = |_| Duration::from_mins(1);
        assert_eq!(cached.get_or_read(long, slow).await.as_deref(), Some(&2));
        let none = Arc::new(CachedValue::<u32>::default());
        assert_eq!(none.get_or_read(short, slow).await, None);
    }

    #[tokio::test]
    async fn failing_prometheus_is_queried_less_often() {
        let cached = CachedValue::default();
        for pause in [1, 2, 4, 8, 16, 32, 60, 60] {
            cached.store(make_fresh_value(0, true), Instant::now());
            let until = cached
                .lock_slot()
                .next
                .duration_since(Instant::now())
                .as_secs_f64();
            assert!((f64::from(pause) - until).abs() < 0.5, "{pause} {until}");
        }
        cached.store(make_fresh_value(0, false), Instant::now());
        assert_eq!(cached.lock_slot().failures, 0);
        let until = cached
            .lock_slot()
            .next
            .duration_since(Instant::now())
            .as_secs_f64();
        assert!((0.7..=0.8).contains(&until), "{until}");
        // The read took five seconds, so the next read starts at least five seconds later.
        cached.store(
            make_fresh_value(0, false),
            Instant::now().checked_sub(5 * SECOND).unwrap(),
        );
        let until = cached
            .lock_slot()
            .next
            .duration_since(Instant::now())
            .as_secs_f64();
        assert!((4.5..=5.1).contains(&until), "{until}");
        let cached = Arc::new(CachedValue::default());
        assert_eq!(
            cached
                .get_or_read(|_| SECOND, |_| async { panic!("as a test wants") })
                .await,
            None
        );
        assert_eq!(
            cached
                .get_or_read(|_| SECOND, |_| async { make_fresh_value(3, false) })
                .await
                .as_deref(),
            Some(&3)
        );
    }

    #[test]
    fn most_recently_used_keys_stay_cached() {
        let slots = CachedByKey::<u32, u32>::new(2);
        let [one, two] = [1, 2].map(|key| slots.get_or_create_slot(key));
        slots.get_or_create_slot(1);
        slots.get_or_create_slot(3);
        assert!(Arc::ptr_eq(&one, &slots.get_or_create_slot(1)));
        assert!(!Arc::ptr_eq(&two, &slots.get_or_create_slot(2)));
    }
}
