//! Periods of equal length.

/// A division of time into periods of equal length, called rounds.
#[derive(Debug, Clone, Copy)]
pub(in super::super) struct Cycle {
    pub(in super::super) period_s: f64,
    /// The time that has passed in the first round when the timeline starts, in seconds.
    pub(in super::super) phase_s: f64,
}

impl Cycle {
    /// Returns the round that contains a time, and the seconds since the round started.
    pub(in super::super) fn at(self, seconds: f64) -> (i64, f64) {
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
    fn a_time_lies_in_one_round() {
        let cycle = Cycle {
            period_s: 10.0,
            phase_s: 4.0,
        };
        assert_eq!(cycle.at(0.0), (0, 4.0));
        assert_eq!(cycle.at(6.0), (1, 0.0));
        assert_eq!(cycle.at(17.0), (2, 1.0));
        assert!((cycle.start_s(2) - 16.0).abs() < 1e-9);
    }
}
