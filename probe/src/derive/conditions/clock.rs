//! The time used by rules, which never runs backwards, and can be paused.

/// The maximum step of the clock. A longer step means that the clock was set or the machine was
/// suspended, and nothing was observed during that time.
const LONGEST_STEP_MS: u64 = 60_000;

/// A point in time, for display and for measuring durations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moment {
    /// The wall clock, in milliseconds since the Unix epoch.
    pub wall_ms: u64,
    /// The time for which the GPU has been observed, in milliseconds.
    ticks_ms: u64,
}

impl Moment {
    /// Returns the observed time since an earlier moment, in milliseconds.
    pub fn since(self, earlier: Self) -> u64 {
        self.ticks_ms.saturating_sub(earlier.ticks_ms)
    }
}

/// A source of moments, based on the wall clock.
#[derive(Debug, Default)]
pub struct Clock {
    wall_ms: Option<u64>,
    ticks_ms: u64,
}

impl Clock {
    /// Returns the current moment. The time since the previous call counts if the GPU was observed
    /// during that time.
    pub fn advance(&mut self, wall_ms: u64, is_watched: bool) -> Moment {
        let step_ms = self.wall_ms.map_or(0, |before| {
            wall_ms.saturating_sub(before).min(LONGEST_STEP_MS)
        });
        if is_watched {
            self.ticks_ms = self.ticks_ms.saturating_add(step_ms);
        }
        self.wall_ms = Some(wall_ms);
        self.at(wall_ms)
    }

    /// Returns a moment between two calls of [`advance`](Self::advance).
    pub fn at(&self, wall_ms: u64) -> Moment {
        Moment {
            wall_ms,
            ticks_ms: self.ticks_ms,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_that_jumps_or_is_not_watched_does_not_count() {
        let mut clock = Clock::default();
        let first = clock.advance(1_000_000, true);
        assert_eq!(clock.advance(1_001_000, true).since(first), 1_000);
        assert_eq!(clock.advance(500_000, true).since(first), 1_000, "set back");
        assert_eq!(
            clock.advance(510_000, false).since(first),
            1_000,
            "not watched"
        );
        assert_eq!(
            clock.advance(90_000_000, true).since(first),
            61_000,
            "set forward"
        );
        assert_eq!(clock.at(90_000_500).since(first), 61_000);
    }
}
