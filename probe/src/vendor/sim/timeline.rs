//! The clock of a running simulation.

use std::time::{Duration, Instant};

use crate::model::now_ms;

use super::Scenario;

/// The clock of a running simulation. Changes to the machine's clock do not affect it.
#[derive(Debug, Clone)]
pub struct Timeline {
    start_ms: u64,
    begun: Instant,
    elapsed_when_begun: Duration,
    /// The time from `begun` to the start, if the start is in the future.
    delay: Duration,
}

impl Timeline {
    /// Starts the timeline now, or at the scenario's `start_ms`. Before a start in the future, the
    /// elapsed time is zero.
    pub fn start(scenario: &Scenario) -> Self {
        let now = now_ms();
        let wanted_ms = scenario.start_ms.unwrap_or(now);
        let start_ms = wanted_ms.min(now);
        Self {
            start_ms,
            begun: Instant::now(),
            elapsed_when_begun: Duration::from_millis(now - start_ms),
            delay: Duration::from_millis(wanted_ms - start_ms),
        }
    }

    /// Returns the time since the start of the timeline, in milliseconds.
    pub fn elapsed_ms(&self) -> u64 {
        self.elapsed().as_millis() as u64
    }

    /// Returns the time since the start of the timeline, in seconds.
    pub fn elapsed_s(&self) -> f64 {
        self.elapsed().as_secs_f64()
    }

    fn elapsed(&self) -> Duration {
        (self.elapsed_when_begun + self.begun.elapsed()).saturating_sub(self.delay)
    }

    /// Converts a time on the timeline to milliseconds since 1970.
    pub fn unix_ms(&self, seconds: f64) -> u64 {
        self.start_ms
            .saturating_add_signed((seconds * 1000.0).round() as i64)
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    fn make_scenario_starting_at(start_ms: u64) -> Scenario {
        let mut scenario = Scenario::with_gpus(1, 0);
        scenario.start_ms = Some(start_ms);
        scenario
    }

    #[test]
    fn timeline_starts_now_or_at_start_ms() {
        let fresh = Timeline::start(&Scenario::default());
        assert!(fresh.elapsed_ms() < 5_000);

        let hour_ago = now_ms() - 3_600_000;
        let old = Timeline::start(&make_scenario_starting_at(hour_ago));
        assert!((3_600_000..3_605_000).contains(&old.elapsed_ms()));
        assert_eq!(old.unix_ms(1.5), hour_ago + 1_500);
        assert_eq!(old.unix_ms(-1.5), hour_ago - 1_500);

        let delayed = Timeline::start(&make_scenario_starting_at(u64::MAX));
        thread::sleep(Duration::from_millis(2));
        assert_eq!(delayed.elapsed_ms(), 0);
    }
}
