//! Heat: temperature follows power with a lag.

use std::sync::{Arc, Mutex, PoisonError};

/// How heat gets out of a part of the board.
#[derive(Debug)]
pub(super) struct Path {
    /// How much warmer than the air the part becomes, per watt of the board.
    celsius_per_watt: f64,
    /// The time in which it comes 63 % nearer to where it is going, in seconds.
    lag_s: f64,
}

/// The chip of an H200: 36 C at 125 W and 60 C at 693 W were measured.
pub(super) const CHIP: Path = Path {
    celsius_per_watt: 0.042,
    lag_s: 18.0,
};
/// Its memory: 34 C and 47 C.
pub(super) const MEMORY: Path = Path {
    celsius_per_watt: 0.0235,
    lag_s: 30.0,
};

/// Power is taken as constant within such an interval.
const STEP_S: f64 = 5.0;
/// Intervals that are looked back on: after four lags nothing of the past is left.
const STEPS: i64 = 24;

/// The mean power of intervals that were looked at, since every reading looks at the same ones
/// again.
#[derive(Debug, Clone, Default)]
pub(super) struct Past(Arc<Mutex<Remembered>>);

/// Each interval, by its number, has one place where it can be.
type Remembered = [Option<(i64, f64)>; REMEMBERED];

/// Intervals that are remembered; more than are looked back on.
const REMEMBERED: usize = 32;

impl Path {
    /// The temperature at a time, from the air's and the power before.
    ///
    /// Each interval's power warms as a body with one time constant would; the intervals lie at
    /// fixed times, so that two neighboring readings see the same past and the curve is smooth.
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
        // What lies further back counts as it was at its end.
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
