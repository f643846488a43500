//! The sampling interval, which can be changed while sampling.

use std::{
    sync::{Condvar, Mutex, PoisonError},
    time::Duration,
};

/// The sampling interval, shared by the sampler and the code that changes it.
#[derive(Debug)]
pub struct SharedInterval {
    interval: Mutex<Duration>,
    changed: Condvar,
}

impl SharedInterval {
    pub fn new(interval: Duration) -> Self {
        Self {
            interval: Mutex::new(interval),
            changed: Condvar::new(),
        }
    }

    /// Returns the current interval.
    pub fn get(&self) -> Duration {
        *self.interval.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the interval, and wakes the sampler if it is sleeping.
    pub fn set(&self, interval: Duration) {
        *self.interval.lock().unwrap_or_else(PoisonError::into_inner) = interval;
        self.changed.notify_all();
    }

    /// Sleeps for `wait`, or until the interval differs from `known`. Returns `true` if the full
    /// time has passed.
    pub(super) fn sleep_unless_changed(&self, known: Duration, wait: Duration) -> bool {
        let interval = self.interval.lock().unwrap_or_else(PoisonError::into_inner);
        let woken = self
            .changed
            .wait_timeout_while(interval, wait, |interval| *interval == known);
        woken.unwrap_or_else(PoisonError::into_inner).1.timed_out()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{sync::Arc, time::Instant};

    #[test]
    fn interval_change_wakes_sleeping_sampler() {
        let (slow, fast) = (Duration::from_mins(1), Duration::from_millis(100));
        let interval = Arc::new(SharedInterval::new(slow));
        let begun = Instant::now();
        std::thread::scope(|scope| {
            let sleeper = scope.spawn(|| interval.sleep_unless_changed(slow, slow));
            interval.set(fast);
            assert!(!sleeper.join().unwrap());
        });
        assert!(begun.elapsed() < Duration::from_secs(30));
        assert_eq!(interval.get(), fast);
        assert!(interval.sleep_unless_changed(fast, Duration::from_millis(1)));
    }
}
