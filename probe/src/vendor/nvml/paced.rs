//! What is read less often than the rest, since it costs more.

use std::time::{Duration, Instant};

/// A period that is due again and again.
#[derive(Debug)]
pub(super) struct Every {
    period: Duration,
    last: Option<Instant>,
}

impl Every {
    pub(super) const fn new(period: Duration) -> Self {
        Self { period, last: None }
    }

    /// Whether it is time, which it is at first. A beat that comes a little early is not left out,
    /// since the next would be a whole beat late.
    pub(super) fn is_due(&mut self) -> bool {
        self.is_due_after(self.period)
    }

    /// The same where the period is another now.
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
    fn a_beat_a_little_early_counts() {
        let mut every = Every::new(Duration::from_mins(10));
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
