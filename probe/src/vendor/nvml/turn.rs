//! A lock that can be waited for with a time limit.

use std::{
    sync::{Condvar, Mutex, PoisonError},
    time::Duration,
};

/// A lock that can be waited for with a time limit, because the thread that holds the lock may hang
/// in the driver.
pub(super) struct TimedLock {
    taken: Mutex<bool>,
    freed: Condvar,
}

/// A guard that releases the lock when it is dropped.
pub(super) struct TimedLockGuard<'a>(&'a TimedLock);

impl TimedLock {
    pub(super) const fn new() -> Self {
        Self {
            taken: Mutex::new(false),
            freed: Condvar::new(),
        }
    }

    /// Acquires the lock. Returns `None` if the lock does not become free within `patience`.
    pub(super) fn acquire(&self, patience: Duration) -> Option<TimedLockGuard<'_>> {
        let taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self
            .freed
            .wait_timeout_while(taken, patience, |taken| *taken);
        let (mut taken, _) = waited.unwrap_or_else(PoisonError::into_inner);
        if *taken {
            return None;
        }
        *taken = true;
        Some(TimedLockGuard(self))
    }
}

impl Drop for TimedLockGuard<'_> {
    fn drop(&mut self) {
        *self.0.taken.lock().unwrap_or_else(PoisonError::into_inner) = false;
        self.0.freed.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn second_thread_gives_up_after_time_limit() {
        let turn = TimedLock::new();
        let first = turn.acquire(Duration::ZERO);
        assert!(first.is_some());
        assert!(turn.acquire(Duration::from_millis(5)).is_none());
        drop(first);
        assert!(turn.acquire(Duration::ZERO).is_some());
    }

    #[test]
    fn waiting_thread_continues_when_lock_is_released() {
        let turn = TimedLock::new();
        std::thread::scope(|scope| {
            let first = turn.acquire(Duration::ZERO);
            let second = scope.spawn(|| turn.acquire(Duration::from_secs(30)).is_some());
            std::thread::sleep(Duration::from_millis(10));
            drop(first);
            assert!(second.join().unwrap());
        });
    }
}
