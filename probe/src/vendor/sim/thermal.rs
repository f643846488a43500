//! The temperatures, which follow the power with a lag.

use std::sync::{Arc, Mutex, PoisonError};

/// The cooling of a part of the board.
#[derive(Debug)]
pub(super) struct Path {
    /// The rise above the air temperature for each watt that the board draws.
    celsius_per_watt: f64,
    /// The time in seconds in which the temperature comes 63% closer to its final value.
    lag_s: f64,
}

/// The cooling of an H200's chip, for which 36 °C at 125 W and 60 °C at 693 W were measured.
pub(super) const CHIP: Path = Path {
    celsius_per_watt: 0.042,
    lag_s: 18.0,
};
/// The cooling of an H200's memory, for which 34 °C and 47 °C were measured at the same powers.
pub(super) const MEMORY: Path = Path {
    celsius_per_watt: 0.0235,
    lag_s: 30.0,
};

/// The length of the intervals in which power counts as constant.
const STEP_S: f64 = 5.0;
/// The number of past intervals that affect the temperature. After four lags, earlier power has no
/// effect.
const STEPS: i64 = 24;

/// The mean power of intervals, which is stored because consecutive readings need the same
/// intervals.
#[derive(Debug, Clone, Default)]
pub(super) struct Past(Arc<Mutex<Remembered>>);

/// The stored intervals with their numbers. Each number has a fixed slot.
type Remembered = [Option<(i64, f64)>; REMEMBERED];

/// The number of stored intervals. It is larger than the number that one reading needs.
const REMEMBERED: usize = 32;

impl Path {
    /// Returns the temperature at a time, from the air temperature and the past power.
    ///
    /// Each interval's power warms the part like a body with one time constant. The intervals are
    /// at fixed times, so that consecutive readings use the same past and the curve is smooth.
    pub(super) fn celsius(
        &self,
        seconds: f64,
        inlet_celsius: f64,
        past: &Past,
        watts: impl Fn(f64) -> f64,
    ) -> f64 {
        let mut known = past.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut mean_watts = |step: i64| {
            let place = &mut known[step.cast_unsigned() as usize % REMEMBERED];
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
        for step in (newest - STEPS + 1..=newest).rev() {
            let begin = step as f64 * STEP_S;
            let share =
                (-(seconds - end) / self.lag_s).exp() - (-(seconds - begin) / self.lag_s).exp();
            felt_watts += share * mean_watts(step);
            end = begin;
        }
        // Earlier power counts as if it had been that of the last interval.
        felt_watts += (-(seconds - end) / self.lag_s).exp() * mean_watts(newest - STEPS);
        inlet_celsius + self.celsius_per_watt * felt_watts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn temperature_follows_a_step_of_power_with_a_lag() {
        let step = |at: f64| if at < 1_000.0 { 100.0 } else { 700.0 };
        let past = Past::default();
        let at = |seconds| CHIP.celsius(seconds, 30.0, &past, step);
        assert!((at(999.0) - 34.2).abs() < 0.1);
        let risen = (at(1_018.0) - 34.2) / (0.042 * 600.0);
        assert!(
            (0.58..0.68).contains(&risen),
            "{risen} of the way after one lag"
        );
        assert!((at(1_200.0) - 59.4).abs() < 0.2);
    }
}
