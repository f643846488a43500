//! Repeating periods of equal length.

/// A division of time into periods of equal length, which are called rounds.
#[derive(Debug, Clone, Copy)]
pub(in super::super) struct Cycle {
    pub(in super::super) period_s: f64,
    /// How much of a round has passed when the timeline starts, in seconds.
    pub(in super::super) phase_s: f64,
}

impl Cycle {
    /// Returns the number of the round that contains `seconds`, and the time since that round
    /// started.
    pub(in super::super) fn find_round(self, seconds: f64) -> (i64, f64) {
        let shifted = seconds + self.phase_s;
        let round = (shifted / self.period_s).floor();
        (round as i64, shifted - round * self.period_s)
    }

    pub(in super::super) fn start_s(self, round: i64) -> f64 {
        round as f64 * self.period_s - self.phase_s
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_is_converted_to_round_and_offset() {
        let cycle = Cycle {
            period_s: 10.0,
            phase_s: 4.0,
        };
        assert_eq!(cycle.find_round(0.0), (0, 4.0));
        assert_eq!(cycle.find_round(6.0), (1, 0.0));
        assert_eq!(cycle.find_round(17.0), (2, 1.0));
        assert!((cycle.start_s(2) - 16.0).abs() < 1e-9);
    }
}
