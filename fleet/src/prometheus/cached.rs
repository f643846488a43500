//! A cache whose readers share each value. Values are read one at a time, only on request, and at
//! most once per period.

use std::{
    collections::HashMap,
    hash::Hash,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use tokio::{sync::watch, time::timeout};

/// The maximum delay between two attempts to read a failing source.
const LONGEST_PAUSE: Duration = Duration::from_mins(1);

/// The last value, and the state of the current reading.
pub(super) struct Cached<T>(Mutex<Slot<T>>);

struct Slot<T> {
    last: Option<Arc<T>>,
    /// The time from which on the value is read again.
    next: Instant,
    failures: u32,
    /// The receiver that closes when the current reading is complete.
    flight: Option<watch::Receiver<()>>,
}

/// A value that was read, and the time for which it is fresh.
pub(super) struct Fresh<T> {
    pub(super) value: Arc<T>,
    pub(super) period: Duration,
    /// Whether the source failed. A failing source is read less and less often.
    pub(super) is_failure: bool,
}

impl<T> Default for Cached<T> {
    fn default() -> Self {
        Self(Mutex::new(Slot {
            last: None,
            next: Instant::now(),
            failures: 0,
            flight: None,
        }))
    }
}

impl<T: Send + Sync + 'static> Cached<T> {
    /// Returns the last value, after reading it again if it is due. `patience` returns how long to
    /// wait, depending on whether there is an earlier value. Returns `None` if nothing has been
    /// read by then.
    pub(super) async fn get<F>(
        self: &Arc<Self>,
        patience: impl FnOnce(bool) -> Duration,
        read: impl FnOnce(Option<Arc<T>>) -> F,
    ) -> Option<Arc<T>>
    where
        F: Future<Output = Fresh<T>> + Send + 'static,
    {
        let (last, flight) = self.last(read);
        let Some(mut flight) = flight else {
            return last;
        };
        // The reading is over, whatever its result.
        let _ = timeout(patience(last.is_some()), flight.changed()).await;
        self.slot().last.clone()
    }

    /// Returns the last value. If it is due, a reading starts, and a receiver is returned that
    /// closes when the reading is complete.
    pub(super) fn last<F>(
        self: &Arc<Self>,
        read: impl FnOnce(Option<Arc<T>>) -> F,
    ) -> (Option<Arc<T>>, Option<watch::Receiver<()>>)
    where
        F: Future<Output = Fresh<T>> + Send + 'static,
    {
        let mut slot = self.slot();
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
            // The reading continues even if its requester has gone, because others may wait for it.
            tokio::spawn(async move {
                let begin = Instant::now();
                let fresh = reading.await;
                this.keep(fresh, begin);
                drop(landed);
            });
        }
        (slot.last.clone(), slot.flight.clone())
    }

    /// Stores a value whose reading started at `begin`.
    fn keep(&self, fresh: Fresh<T>, begin: Instant) {
        let (mut slot, now) = (self.slot(), Instant::now());
        slot.failures = if fresh.is_failure {
            slot.failures + 1
        } else {
            0
        };
        let pause = fresh
            .period
            .saturating_mul(1 << slot.failures.min(8).saturating_sub(1));
        let pause = if fresh.is_failure {
            pause.min(LONGEST_PAUSE.max(fresh.period))
        } else {
            fresh.period
        };
        // A shorter pause ensures that a request once per period gets a new value each time. A slow
        // source rests for as long as it has taken.
        let pause = if fresh.is_failure {
            pause
        } else {
            pause * 4 / 5
        };
        slot.next = (begin + pause).max(now + begin.elapsed());
        slot.last = Some(fresh.value);
    }

    fn slot(&self) -> std::sync::MutexGuard<'_, Slot<T>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Caches by key. The most recently requested ones are kept.
pub(super) struct CachedByKey<K, T> {
    most: usize,
    slots: Mutex<Slots<K, T>>,
}

struct Slots<K, T> {
    clock: u64,
    all: HashMap<K, (u64, Arc<Cached<T>>)>,
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

    pub(super) fn of(&self, key: K) -> Arc<Cached<T>> {
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

    fn fresh(value: u32, is_failure: bool) -> Fresh<u32> {
        Fresh {
            value: Arc::new(value),
            period: SECOND,
            is_failure,
        }
    }

    #[tokio::test]
    async fn all_who_ask_share_one_reading() {
        let (cached, count) = (Arc::new(Cached::default()), Arc::new(AtomicU32::new(0)));
        let ask = || {
            let count = Arc::clone(&count);
            cached.get(
                |_| SECOND,
                move |_| async move {
                    tokio::time::sleep(Duration::from_millis(20)).await;
                    fresh(count.fetch_add(1, Ordering::SeqCst), false)
                },
            )
        };
        let all = futures_util::future::join_all((0..10).map(|_| ask())).await;
        assert!(all.iter().all(|value| value.as_deref() == Some(&0)));
        assert_eq!(ask().await.as_deref(), Some(&0), "its period is not over");
        assert_eq!(count.load(Ordering::SeqCst), 1);
    }

    #[tokio::test]
    async fn what_is_slow_is_shown_as_it_was_and_goes_on() {
        let cached = Arc::new(Cached::default());
        cached.keep(
            Fresh {
                period: Duration::ZERO,
                ..fresh(1, false)
            },
            Instant::now(),
        );
        let slow = |_| async {
            tokio::time::sleep(Duration::from_millis(50)).await;
            fresh(2, false)
        };
        let patience = |has_some| {
            if has_some {
                Duration::from_millis(1)
            } else {
                SECOND
            }
        };
        assert_eq!(cached.get(patience, slow).await.as_deref(), Some(&1));
        tokio::time::sleep(Duration::from_millis(100)).await;
        assert_eq!(cached.get(patience, slow).await.as_deref(), Some(&2));
        let none = Arc::new(Cached::<u32>::default());
        assert_eq!(none.get(|_| Duration::from_millis(1), slow).await, None);
    }

    #[tokio::test]
    async fn a_source_that_fails_is_asked_less_often_and_one_that_panics_again() {
        let cached = Cached::default();
        for pause in [1, 2, 4, 8, 16, 32, 60, 60] {
            cached.keep(fresh(0, true), Instant::now());
            let until = cached
                .slot()
                .next
                .duration_since(Instant::now())
                .as_secs_f64();
            assert!((f64::from(pause) - until).abs() < 0.5, "{pause} {until}");
        }
        cached.keep(fresh(0, false), Instant::now());
        assert_eq!(cached.slot().failures, 0);
        let until = cached
            .slot()
            .next
            .duration_since(Instant::now())
            .as_secs_f64();
        assert!((0.7..=0.8).contains(&until), "{until}");
        // This reading took five seconds, so the source rests for as long.
        cached.keep(
            fresh(0, false),
            Instant::now().checked_sub(5 * SECOND).unwrap(),
        );
        let until = cached
            .slot()
            .next
            .duration_since(Instant::now())
            .as_secs_f64();
        assert!((4.5..=5.1).contains(&until), "{until}");
        let cached = Arc::new(Cached::default());
        assert_eq!(
            cached
                .get(|_| SECOND, |_| async { panic!("as a test wants") })
                .await,
            None
        );
        assert_eq!(
            cached
                .get(|_| SECOND, |_| async { fresh(3, false) })
                .await
                .as_deref(),
            Some(&3)
        );
    }

    #[test]
    fn the_keys_that_were_asked_for_last_are_kept() {
        let slots = CachedByKey::<u32, u32>::new(2);
        let [one, two] = [1, 2].map(|key| slots.of(key));
        slots.of(1);
        slots.of(3);
        assert!(Arc::ptr_eq(&one, &slots.of(1)));
        assert!(!Arc::ptr_eq(&two, &slots.of(2)));
    }
}
