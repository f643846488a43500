//! A lock whose waiters give up after a time limit.

use std::{
    sync::{Condvar, Mutex, PoisonError},
    time::Duration,
};

/// A lock with a time limit, because the thread that holds the lock may hang in the driver.
pub(super) struct Turn {
    taken: Mutex<bool>,
    freed: Condvar,
}

/// A held lock, which is released when this value is dropped.
pub(super) struct Guard<'a>(&'a Turn);

impl Turn {
    pub(super) const fn new() -> Self {
        Self {
            taken: Mutex::new(false),
            freed: Condvar::new(),
        }
    }

    /// Acquires the lock. Returns `None` if it does not become free within `patience`.
    pub(super) fn take(&self, patience: Duration) -> Option<Guard<'_>> {
        let taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self
            .freed
            .wait_timeout_while(taken, patience, |taken| *taken);
        let (mut taken, _) = waited.unwrap_or_else(PoisonError::into_inner);
        if *taken {
            return None;
        }
        *taken = true;
        Some(Guard(self))
    }
}

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        *self.0.taken.lock().unwrap_or_else(PoisonError::into_inner) = false;
        self.0.freed.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_at_a_time_and_nobody_for_ever() {
        let turn = Turn::new();
        let first = turn.take(Duration::ZERO);
        assert!(first.is_some());
        assert!(turn.take(Duration::from_millis(5)).is_none());
        drop(first);
        assert!(turn.take(Duration::ZERO).is_some());
    }

    #[test]
    fn the_next_comes_as_soon_as_the_turn_is_free() {
        let turn = Turn::new();
        std::thread::scope(|scope| {
            let first = turn.take(Duration::ZERO);
            let second = scope.spawn(|| turn.take(Duration::from_secs(30)).is_some());
            std::thread::sleep(Duration::from_millis(10));
            drop(first);
            assert!(second.join().unwrap());
        });
    }
}
