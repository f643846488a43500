//! Simulated temperatures, which follow the power with a lag.

use std::sync::{Arc, Mutex, PoisonError};

/// The cooling of one part of the board.
#[derive(Debug)]
pub(super) struct Cooling {
    /// How much warmer than the air the part becomes for each watt that the board draws.
    celsius_per_watt: f64,
    /// The time after which the temperature has covered 63% of its distance to the final value, in
    /// seconds.
    lag_s: f64,
}

/// The cooling of an H200's chip. The measured temperatures were 36 °C at 125 W and 60 °C at 693 W.
pub(super) const CHIP_COOLING: Cooling = Cooling {
    celsius_per_watt: 0.042,
    lag_s: 18.0,
};
/// The cooling of an H200's memory. The measured temperatures were 34 °C at 125 W and 47 °C at 693
/// W.
pub(super) const MEMORY_COOLING: Cooling = Cooling {
    celsius_per_watt: 0.0235,
    lag_s: 30.0,
};

/// The length of the intervals in which the power is treated as constant, in seconds.
const STEP_S: f64 = 5.0;
/// The number of past intervals that are considered. Power from more than four lags ago has
/// practically no effect.
const PAST_STEPS: i64 = 24;

/// The mean power of past intervals. It is stored because consecutive readings need the same
/// intervals.
#[derive(Debug, Clone, Default)]
pub(super) struct PowerHistory(Arc<Mutex<StoredMeans>>);

/// The stored intervals, as pairs of a number and the mean power. An interval's number determines
/// its slot.
type StoredMeans = [Option<(i64, f64)>; STORED_STEPS];

/// The number of intervals that are stored. One reading needs fewer.
const STORED_STEPS: usize = 32;

impl Cooling {
    /// Returns the temperature at a given time, calculated from the air temperature and the past
    /// power.
    ///
    /// The part is modeled as a body with a single time constant that each interval's power warms.
    /// Intervals start at fixed times, so that consecutive readings use the same past and the curve
    /// is smooth.
    pub(super) fn compute_celsius(
        &self,
        seconds: f64,
        inlet_celsius: f64,
        past: &PowerHistory,
        watts: impl Fn(f64) -> f64,
    ) -> f64 {
        let mut known = past.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut mean_watts = |step: i64| {
            let place = &mut known[step.cast_unsigned() as usize % STORED_STEPS];
            match *place {
                Some((known, watts)) if known == step => watts,
                _ => {
                    let begin = step as f64 * STEP_S;
                    let mean = f64::midpoint(watts(begin + 1.3), watts(begin + 3.8));
                    *place = Some((step, mean));
                    mean
                }
            }
        };
        let newest = (seconds / STEP_S).floor() as i64;
        let mut felt_watts = 0.0;
        let mut end = seconds;
        for step in (newest - PAST_STEPS + 1..=newest).rev() {
            let begin = step as f64 * STEP_S;
            let share =
                (-(seconds - end) / self.lag_s).exp() - (-(seconds - begin) / self.lag_s).exp();
            felt_watts += share * mean_watts(step);
            end = begin;
        }
        // All power before the considered intervals counts as equal to that of the interval just
        // before them.
        felt_watts += (-(seconds - end) / self.lag_s).exp() * mean_watts(newest - PAST_STEPS);
        inlet_celsius + self.celsius_per_watt * felt_watts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn temperature_follows_power_with_lag() {
        let step = |at: f64| if at < 1_000.0 { 100.0 } else { 700.0 };
        let past = PowerHistory::default();
        let at = |seconds| CHIP_COOLING.compute_celsius(seconds, 30.0, &past, step);
        assert!((at(999.0) - 34.2).abs() < 0.1);
        let risen = (at(1_018.0) - 34.2) / (0.042 * 600.0);
        assert!(
            (0.58..0.68).contains(&risen),
            "{risen} of the way after one lag"
        );
        assert!((at(1_200.0) - 59.4).abs() < 0.2);
    }
}
