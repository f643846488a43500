//! The clock of a running scenario.

use std::time::{Duration, Instant};

use crate::model::now_ms;

use super::Scenario;

/// The clock of a scenario. Changes of the machine's clock do not affect it.
#[derive(Debug, Clone)]
pub struct Timeline {
    start_ms: u64,
    begun: Instant,
    elapsed_when_begun: Duration,
}

impl Timeline {
    /// Starts the timeline now, or at the scenario's `start_ms` if that is in the past.
    pub fn begin(scenario: &Scenario) -> Self {
        let now = now_ms();
        let start_ms = scenario.start_ms.unwrap_or(now).min(now);
        Self {
            start_ms,
            begun: Instant::now(),
            elapsed_when_begun: Duration::from_millis(now - start_ms),
        }
    }

    /// Returns the milliseconds since the start.
    pub fn elapsed_ms(&self) -> u64 {
        (self.elapsed_when_begun + self.begun.elapsed()).as_millis() as u64
    }

    /// Returns the seconds since the start.
    pub fn elapsed_s(&self) -> f64 {
        (self.elapsed_when_begun + self.begun.elapsed()).as_secs_f64()
    }

    /// Converts a time of the timeline to milliseconds since 1970.
    pub fn unix_ms(&self, seconds: f64) -> u64 {
        self.start_ms
            .saturating_add_signed((seconds * 1000.0).round() as i64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn starting(start_ms: u64) -> Scenario {
        let mut scenario = Scenario::simple(1, 0);
        scenario.start_ms = Some(start_ms);
        scenario
    }

    #[test]
    fn a_timeline_starts_now_or_where_the_scenario_says() {
        let fresh = Timeline::begin(&Scenario::default());
        assert!(fresh.elapsed_ms() < 5_000);

        let hour_ago = now_ms() - 3_600_000;
        let old = Timeline::begin(&starting(hour_ago));
        assert!((3_600_000..3_605_000).contains(&old.elapsed_ms()));
        assert_eq!(old.unix_ms(1.5), hour_ago + 1_500);
        assert_eq!(old.unix_ms(-1.5), hour_ago - 1_500);

        let to_come = Timeline::begin(&starting(u64::MAX));
        assert!(to_come.elapsed_ms() < 5_000);
    }
}
