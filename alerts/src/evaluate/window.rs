//! The rate of change of a field over a time window.

use std::collections::VecDeque;

use gpumon_probe::model::fields::Kind;

use crate::rules::{WatchedField, field_of};

/// The approximate maximum number of values in a window: more values add no information.
const MAX_VALUES: u64 = 120;

/// The values of a time window, oldest first.
#[derive(Debug)]
pub(super) struct RateWindow {
    over_ms: u64,
    is_counter: bool,
    values: VecDeque<(u64, f64)>,
}

impl RateWindow {
    pub(super) fn new(over_ms: u64, subject: WatchedField) -> Self {
        Self {
            over_ms,
            is_counter: field_of!(subject, kind) == Kind::Counter,
            values: VecDeque::new(),
        }
    }

    /// Adds a sample's value. Ignores a sample that was already added, and clears the window if the
    /// clock was set back.
    pub(super) fn push(&mut self, at_ms: Option<u64>, value: Option<f64>) {
        let Some(at_ms) = at_ms else { return };
        let newest_ms = self.values.back().map(|(newest_ms, _)| *newest_ms);
        if newest_ms.is_some_and(|newest_ms| at_ms < newest_ms) {
            self.values.clear();
        }
        self.values
            .retain(|(known_ms, _)| at_ms - known_ms <= self.over_ms);
        let Some(value) = value.filter(|_| newest_ms != Some(at_ms)) else {
            return;
        };
        // To limit the number of values, the newest value replaces the previous one if the value
        // before that is still recent.
        let close_ms = self.over_ms / MAX_VALUES;
        if self.values.len() >= 2 && at_ms - self.values[self.values.len() - 2].0 <= close_ms {
            self.values.pop_back();
        }
        self.values.push_back((at_ms, value));
    }

    /// Returns the change per second; `None` if the values cover less than half of the window.
    ///
    /// The calculation is the same as in Prometheus: for a gauge, the slope of a regression line
    /// (`deriv`); for a counter, its growth, where a decrease counts as a restart from 0 (`rate`).
    pub(super) fn rate_per_second(&self) -> Option<f64> {
        let (first, last) = (self.values.front()?, self.values.back()?);
        let known_ms = last.0 - first.0;
        if known_ms == 0 || known_ms * 2 < self.over_ms {
            return None;
        }
        if self.is_counter {
            let pairs = self.values.iter().zip(self.values.iter().skip(1));
            let growth: f64 = pairs
                .map(|((_, a), (_, b))| if b < a { *b } else { b - a })
                .sum();
            return Some(growth / (known_ms as f64 / 1000.0));
        }
        let count = self.values.len() as f64;
        let points = self
            .values
            .iter()
            .map(|(at_ms, value)| ((at_ms - first.0) as f64 / 1000.0, value - first.1));
        let (mut x, mut y, mut xy, mut xx) = (0.0, 0.0, 0.0, 0.0);
        for (at, value) in points {
            x += at;
            y += value;
            xy += at * value;
            xx += at * at;
        }
        Some((xy - x * y / count) / (xx - x * x / count))
    }
}

#[cfg(test)]
mod tests {
    use gpumon_probe::model::fields::GPU_FIELDS;

    use super::*;

    fn create_window(id: &str, over_ms: u64) -> RateWindow {
        RateWindow::new(
            over_ms,
            WatchedField::Gpu(GPU_FIELDS.iter().find(|field| field.id == id).unwrap()),
        )
    }

    #[test]
    fn gauge_rate_is_slope_and_ignores_noise() {
        let mut window = create_window("temperature.gpu_celsius", 60_000);
        for second in 0..=29_u64 {
            window.push(Some(second * 1000), Some(40.0 + 0.5 * second as f64));
            assert_eq!(window.rate_per_second(), None, "{second}");
        }
        for second in 30..200_u64 {
            let noise = if second % 2 == 0 { 1.0 } else { -1.0 };
            window.push(
                Some(second * 1000),
                Some(40.0 + 0.5 * second as f64 + noise),
            );
            assert!(
                (window.rate_per_second().unwrap() - 0.5).abs() < 0.05,
                "{second}: {:?}",
                window.rate_per_second()
            );
        }
    }

    #[test]
    fn counter_reset_does_not_disturb_rate() {
        let mut window = create_window("power.energy_joules_total", 10_000);
        for second in 0..30_u64 {
            let joules = if second < 20 {
                100 * second
            } else {
                100 * (second - 20)
            };
            window.push(Some(second * 1000), Some(joules as f64));
        }
        assert!(
            (window.rate_per_second().unwrap() - 90.0).abs() < 11.0,
            "{:?}",
            window.rate_per_second()
        );
    }

    #[test]
    fn window_is_bounded_and_restarts_after_gap() {
        let mut window = create_window("power.draw_watts", 60_000);
        for tenth in 0..2000_u64 {
            window.push(Some(tenth * 100), Some(tenth as f64));
            window.push(Some(tenth * 100), Some(-1.0));
        }
        assert!(window.values.len() <= 122, "{}", window.values.len());
        assert!(
            (window.rate_per_second().unwrap() - 10.0).abs() < 1e-6,
            "{:?}",
            window.rate_per_second()
        );
        assert_eq!(window.values.back(), Some(&(199_900, 1999.0)));
        window.push(Some(500_000), Some(1.0));
        assert_eq!((window.values.len(), window.rate_per_second()), (1, None));
        window.push(Some(400_000), Some(1.0));
        assert_eq!(window.values.len(), 1);
    }
}
