//! The clock of the sampler.

use std::time::{Duration, Instant};

/// The minimum time between two samples after a change of the interval.
const SHORTEST: Duration = Duration::from_millis(100);

/// A clock with ticks at fixed times, so that the time needed for a sample does not delay the next.
#[derive(Debug)]
pub(super) struct Ticker {
    interval: Duration,
    next: Instant,
}

impl Ticker {
    /// Returns a ticker with its first tick now.
    pub(super) fn new(interval: Duration) -> Self {
        Self {
            interval,
            next: Instant::now() + interval,
        }
    }

    /// Returns a ticker whose first tick is one interval after the last one, or now if that time
    /// has passed.
    pub(super) fn after(last: Instant, interval: Duration, now: Instant) -> Self {
        Self {
            interval,
            next: (last + interval.max(SHORTEST)).max(now),
        }
    }

    /// Returns the time until the next tick. Missed ticks, as on a suspended or overloaded machine,
    /// are skipped.
    pub(super) fn until_next(&mut self, now: Instant) -> Duration {
        while self.next < now {
            let missed = (now - self.next).as_nanos() / self.interval.as_nanos().max(1) + 1;
            self.next += self.interval * u32::try_from(missed).unwrap_or(u32::MAX);
        }
        let wait = self.next - now;
        self.next += self.interval;
        wait
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slow_sample_does_not_move_the_tick_and_missed_ticks_are_left_out() {
        let interval = Duration::from_millis(100);
        let start = Instant::now();
        let mut ticker = Ticker {
            interval,
            next: start + interval,
        };
        assert_eq!(
            ticker.until_next(start + Duration::from_millis(30)),
            Duration::from_millis(70)
        );
        assert_eq!(
            ticker.until_next(start + Duration::from_millis(160)),
            Duration::from_millis(40)
        );
        assert_eq!(
            ticker.until_next(start + Duration::from_millis(1_250)),
            Duration::from_millis(50)
        );
    }

    #[test]
    fn a_new_interval_counts_from_the_last_tick() {
        let (start, ms) = (Instant::now(), Duration::from_millis);
        let wait = |interval, now| {
            Ticker::after(start, ms(interval), start + ms(now)).until_next(start + ms(now))
        };
        assert_eq!(
            (wait(1_000, 300), wait(10, 30), wait(200, 900)),
            (ms(700), ms(70), ms(0))
        );
    }
}
