//! How fast a field changes, over a window of time.

use std::collections::VecDeque;

use gpumon_probe::model::fields::Kind;

use crate::rules::{Subject, field_of};

/// A window has at most so many values: closer ones tell nothing more.
const MOST_VALUES: u64 = 120;

/// The values of a window, the oldest first.
#[derive(Debug)]
pub(super) struct Window {
    over_ms: u64,
    is_counter: bool,
    values: VecDeque<(u64, f64)>,
}

impl Window {
    pub(super) fn new(over_ms: u64, subject: Subject) -> Self {
        Self {
            over_ms,
            is_counter: field_of!(subject, kind) == Kind::Counter,
            values: VecDeque::new(),
        }
    }

    /// Takes in a value of this moment; what is known already, or of a clock that was set back, is
    /// not taken twice.
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
        // The newest always counts, in the place of one that is too close to the one before it.
        let close_ms = self.over_ms / MOST_VALUES;
        if self.values.len() >= 2 && at_ms - self.values[self.values.len() - 2].0 <= close_ms {
            self.values.pop_back();
        }
        self.values.push_back((at_ms, value));
    }

    /// The change per second; `None` where less than half of the window is known.
    ///
    /// As Prometheus has it: of a gauge the slope of a straight line through all values (`deriv`),
    /// of a counter its growth, begun anew where it went back (`rate`).
    pub(super) fn per_second(&self) -> Option<f64> {
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

    fn window(id: &str, over_ms: u64) -> Window {
        Window::new(
            over_ms,
            Subject::Gpu(GPU_FIELDS.iter().find(|field| field.id == id).unwrap()),
        )
    }

    #[test]
    fn a_gauge_has_a_slope_and_noise_has_none() {
        let mut window = window("temperature.gpu_celsius", 60_000);
        for second in 0..=29_u64 {
            window.push(Some(second * 1000), Some(40.0 + 0.5 * second as f64));
            assert_eq!(window.per_second(), None, "{second}");
        }
        for second in 30..200_u64 {
            let noise = if second % 2 == 0 { 1.0 } else { -1.0 };
            window.push(
                Some(second * 1000),
                Some(40.0 + 0.5 * second as f64 + noise),
            );
            assert!(
                (window.per_second().unwrap() - 0.5).abs() < 0.05,
                "{second}: {:?}",
                window.per_second()
            );
        }
    }

    #[test]
    fn a_counter_that_begins_anew_goes_on() {
        let mut window = window("power.energy_joules_total", 10_000);
        for second in 0..30_u64 {
            let joules = if second < 20 {
                100 * second
            } else {
                100 * (second - 20)
            };
            window.push(Some(second * 1000), Some(joules as f64));
        }
        assert!(
            (window.per_second().unwrap() - 90.0).abs() < 11.0,
            "{:?}",
            window.per_second()
        );
    }

    #[test]
    fn values_are_few_and_a_gap_or_a_clock_that_is_set_back_begins_anew() {
        let mut window = window("power.draw_watts", 60_000);
        for tenth in 0..2000_u64 {
            window.push(Some(tenth * 100), Some(tenth as f64));
            window.push(Some(tenth * 100), Some(-1.0));
        }
        assert!(window.values.len() <= 122, "{}", window.values.len());
        assert!(
            (window.per_second().unwrap() - 10.0).abs() < 1e-6,
            "{:?}",
            window.per_second()
        );
        assert_eq!(window.values.back(), Some(&(199_900, 1999.0)));
        window.push(Some(500_000), Some(1.0));
        assert_eq!((window.values.len(), window.per_second()), (1, None));
        window.push(Some(400_000), Some(1.0));
        assert_eq!(window.values.len(), 1);
    }
}
