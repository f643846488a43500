//! What is read less often than the rest, since it costs more.

use std::time::{Duration, Instant};

use crate::model::{Reading, now_ms};

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

    /// Whether it is time, which it is at first. A beat that comes a little early is not left out, since the next would
    /// be a whole beat late.
    pub(super) fn is_due(&mut self) -> bool {
        let due = self.last.is_none_or(|last| last.elapsed() >= self.period.mul_f64(0.9));
        if due {
            self.last = Some(Instant::now());
        }
        due
    }
}

/// A reading that is kept between two calls, with its time.
#[derive(Debug)]
pub(super) struct Paced<T> {
    every: Every,
    latest: Option<(u64, Reading<T>)>,
}

impl<T: Clone> Paced<T> {
    pub(super) const fn new(period: Duration) -> Self {
        Self { every: Every::new(period), latest: None }
    }

    /// Reads anew where it is time, and gives the last reading with its time where it is not.
    pub(super) fn read(&mut self, call: impl FnOnce() -> Reading<T>) -> Reading<T> {
        match &self.latest {
            Some((at_ms, latest)) if !self.every.is_due() => latest.clone().dated(*at_ms),
            _ => {
                self.every.last = Some(Instant::now());
                let reading = call();
                self.latest = Some((now_ms(), reading.clone()));
                reading
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_paced_reading_is_read_once_in_its_period() {
        let mut paced = Paced::new(Duration::from_mins(1));
        assert_eq!(paced.read(|| Reading::Now(1)), Reading::Now(1));
        assert!(matches!(paced.read(|| Reading::Now(2)), Reading::Earlier { value: 1, .. }));
        paced.every.last = None;
        assert_eq!(paced.read(|| Reading::Now(3)), Reading::Now(3));
    }

    #[test]
    fn a_beat_a_little_early_counts() {
        let mut every = Every::new(Duration::from_mins(10));
        assert!(every.is_due());
        assert!(!every.is_due());
        every.last = Some(Instant::now().checked_sub(Duration::from_secs(599)).unwrap());
        assert!(every.is_due());
    }
}
