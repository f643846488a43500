//! A pausable clock for the rules, which never runs backward.

/// The maximum time counted per step. A longer step means that the clock was set or the machine was
/// suspended, and nothing was observed.
const MAX_STEP_MS: u64 = 60_000;

/// A point in time, with the wall clock for display and a counter for measuring durations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moment {
    /// The wall clock, in milliseconds since the Unix epoch.
    pub wall_ms: u64,
    /// The total time for which the GPU has been observed, in milliseconds.
    ticks_ms: u64,
}

impl Moment {
    /// Returns the observed time since `earlier`, in milliseconds.
    pub fn ms_since(self, earlier: Self) -> u64 {
        self.ticks_ms.saturating_sub(earlier.ticks_ms)
    }
}

/// A clock that returns moments based on the wall clock.
#[derive(Debug, Default)]
pub struct Clock {
    wall_ms: Option<u64>,
    ticks_ms: u64,
}

impl Clock {
    /// Returns the current moment. The time since the previous call counts as observed if
    /// `is_watched` is `true`.
    pub fn advance(&mut self, wall_ms: u64, is_watched: bool) -> Moment {
        let step_ms = self
            .wall_ms
            .map_or(0, |before| wall_ms.saturating_sub(before).min(MAX_STEP_MS));
        if is_watched {
            self.ticks_ms = self.ticks_ms.saturating_add(step_ms);
        }
        self.wall_ms = Some(wall_ms);
        self.moment_at(wall_ms)
    }

    /// Returns a moment after the latest call of [`advance`](Self::advance), without advancing the
    /// clock.
    pub fn moment_at(&self, wall_ms: u64) -> Moment {
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
    fn clock_jumps_and_unwatched_time_do_not_count() {
        let mut clock = Clock::default();
        let first = clock.advance(1_000_000, true);
        assert_eq!(clock.advance(1_001_000, true).ms_since(first), 1_000);
        assert_eq!(
            clock.advance(500_000, true).ms_since(first),
            1_000,
            "set back"
        );
        assert_eq!(
            clock.advance(510_000, false).ms_since(first),
            1_000,
            "not watched"
        );
        assert_eq!(
            clock.advance(90_000_000, true).ms_since(first),
            61_000,
            "set forward"
        );
        assert_eq!(clock.moment_at(90_000_500).ms_since(first), 61_000);
    }
}
