//! A timer for readings that are too expensive for every sample.

use std::time::{Duration, Instant};

/// A timer with a fixed period.
#[derive(Debug)]
pub(super) struct IntervalTimer {
    period: Duration,
    last: Option<Instant>,
}

impl IntervalTimer {
    pub(super) const fn new(period: Duration) -> Self {
        Self { period, last: None }
    }

    /// Returns `true` on the first call and whenever the period has elapsed. A call that comes
    /// slightly early also returns `true`, because the next call could be almost a whole period
    /// late.
    pub(super) fn is_due(&mut self) -> bool {
        self.is_due_after(self.period)
    }

    /// Like [`is_due`](Self::is_due), with a different period.
    pub(super) fn is_due_after(&mut self, period: Duration) -> bool {
        let due = self
            .last
            .is_none_or(|last| last.elapsed() >= period.mul_f64(0.9));
        if due {
            self.last = Some(Instant::now());
        }
        due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slightly_early_call_is_due() {
        let mut every = IntervalTimer::new(Duration::from_mins(10));
        assert!(every.is_due());
        assert!(!every.is_due());
        every.last = Some(
            Instant::now()
                .checked_sub(Duration::from_secs(599))
                .unwrap(),
        );
        assert!(every.is_due());
    }
}
