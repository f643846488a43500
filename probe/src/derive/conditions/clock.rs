//! Time as the rules see it: it never runs backwards, and can be stopped.

/// A longer step is a clock that was set, or a machine that slept. Neither was a time in which
/// anything was seen.
const LONGEST_STEP_MS: u64 = 60_000;

/// A moment, for people and for reckoning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moment {
    /// The wall clock, in milliseconds since the Unix epoch.
    pub wall_ms: u64,
    /// Milliseconds for which the GPU has been watched.
    ticks_ms: u64,
}

impl Moment {
    /// Milliseconds since an earlier moment.
    pub fn since(self, earlier: Self) -> u64 {
        self.ticks_ms.saturating_sub(earlier.ticks_ms)
    }
}

/// Makes moments of the wall clock.
#[derive(Debug, Default)]
pub struct Clock {
    wall_ms: Option<u64>,
    ticks_ms: u64,
}

impl Clock {
    /// Now. The time since the call before counts where the GPU was watched meanwhile.
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

    /// A moment between two calls of [`advance`](Self::advance).
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
