//! The clock that determines when samples are taken.

use std::time::{Duration, Instant};

/// The minimum time between two samples after the interval was changed.
const MIN_INTERVAL: Duration = Duration::from_millis(100);

/// A clock whose ticks are at fixed times, so that the time for taking a sample does not delay the
/// next sample.
#[derive(Debug)]
pub(super) struct Ticker {
    interval: Duration,
    next: Instant,
}

impl Ticker {
    /// Returns a ticker that starts now.
    pub(super) fn new(interval: Duration) -> Self {
        Self {
            interval,
            next: Instant::now() + interval,
        }
    }

    /// Returns a ticker whose first tick is one interval after `last`, or now if that time has
    /// passed.
    pub(super) fn new_after(last: Instant, interval: Duration, now: Instant) -> Self {
        Self {
            interval,
            next: (last + interval.max(MIN_INTERVAL)).max(now),
        }
    }

    /// Returns the time until the next tick. Ticks that were missed, for example while the machine
    /// was suspended or overloaded, are skipped.
    pub(super) fn time_until_next_tick(&mut self, now: Instant) -> Duration {
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
    fn slow_sample_does_not_delay_ticks() {
        let interval = Duration::from_millis(100);
        let start = Instant::now();
        let mut ticker = Ticker {
            interval,
            next: start + interval,
        };
        assert_eq!(
            ticker.time_until_next_tick(start + Duration::from_millis(30)),
            Duration::from_millis(70)
        );
        assert_eq!(
            ticker.time_until_next_tick(start + Duration::from_millis(160)),
            Duration::from_millis(40)
        );
        assert_eq!(
            ticker.time_until_next_tick(start + Duration::from_millis(1_250)),
            Duration::from_millis(50)
        );
    }

    #[test]
    fn new_interval_starts_at_last_tick() {
        let (start, ms) = (Instant::now(), Duration::from_millis);
        let wait = |interval, now| {
            Ticker::new_after(start, ms(interval), start + ms(now))
                .time_until_next_tick(start + ms(now))
        };
        assert_eq!(
            (wait(1_000, 300), wait(10, 30), wait(200, 900)),
            (ms(700), ms(70), ms(0))
        );
    }
}
