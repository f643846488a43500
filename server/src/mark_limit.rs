//! How many marks, or cells, there may be in a time, of all who set any: they are the server's user's, or were all let in.

use std::{
    sync::{Mutex, PoisonError},
    time::Duration,
};

use tokio::time::Instant;

/// So many marks may come at once, and then one per this time.
pub(crate) const BURST: u32 = 20;
const SPACING: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(crate) struct MarkLimit {
    /// When the marks so far would have been set, had they come one by one.
    even: Mutex<Instant>,
}

impl MarkLimit {
    pub(crate) fn new() -> Self {
        Self {
            even: Mutex::new(Instant::now()),
        }
    }

    /// Whether another one may be set at this moment.
    pub(crate) fn admit(&self, now: Instant) -> bool {
        let mut even = self.even.lock().unwrap_or_else(PoisonError::into_inner);
        let next = (*even).max(now) + SPACING;
        let is_admitted = next <= now + SPACING * BURST;
        if is_admitted {
            *even = next;
        }
        is_admitted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_marks_come_at_once_and_then_one_per_second() {
        let limit = MarkLimit::new();
        let start = Instant::now() + Duration::from_secs(1);
        let admitted = |after: Duration| (0..100).filter(|_| limit.admit(start + after)).count();
        assert_eq!(admitted(Duration::ZERO), 20);
        assert_eq!(admitted(Duration::from_millis(999)), 0);
        assert_eq!(admitted(Duration::from_secs(3)), 3);
        assert_eq!(admitted(Duration::from_secs(1000)), 20);
    }
}
