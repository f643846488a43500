//! A timeline of one metric's values, as recorded by the driver.

use std::collections::VecDeque;

use crate::{model::Trace, usage::steps::Span};

/// The maximum time between two values for interpolation. The driver records utilization five times
/// a second, and power more often.
const MAX_GAP_MS: f64 = 500.0;

/// The time for which values are kept, in milliseconds. They are needed as long as the energy of
/// recent steps may still be computed.
const KEPT_MS: f64 = 30_000.0;

/// Values with their times in milliseconds since 1970, in ascending order.
#[derive(Debug, Default)]
pub(super) struct Timeline(VecDeque<(f64, f64)>);

impl Timeline {
    /// Adds the values of a trace. Values that have already been added are ignored, because a
    /// server can send some values twice.
    pub(super) fn add(&mut self, trace: &Trace) {
        for (offset_us, value) in trace.offsets_us.iter().zip(&trace.values) {
            let at_ms = trace.start_us.saturating_add(u64::from(*offset_us)) as f64 / 1000.0;
            if self.newest_ms().is_none_or(|newest_ms| at_ms > newest_ms) {
                self.0.push_back((at_ms, *value));
            }
        }
        let newest_ms = self.newest_ms().unwrap_or_default();
        while self
            .0
            .front()
            .is_some_and(|(at_ms, _)| *at_ms < newest_ms - KEPT_MS)
        {
            self.0.pop_front();
        }
    }

    /// Returns the time of the newest value, in milliseconds since 1970.
    pub(super) fn newest_ms(&self) -> Option<f64> {
        self.0.back().map(|(at_ms, _)| *at_ms)
    }

    /// Returns the integral over a span in seconds, with linear interpolation between values that
    /// are instantaneous. Returns `None` if values are missing in a part of the span.
    pub(super) fn integrate_linear(&self, span: Span) -> Option<f64> {
        self.integrate(span, |(one_ms, one), (other_ms, other), middle_ms| {
            one + (other - one) * (middle_ms - one_ms) / (other_ms - one_ms)
        })
    }

    /// Returns the integral over a span in seconds, for values that are averages since the previous
    /// value. Returns `None` if values are missing in a part of the span.
    pub(super) fn integrate_steps(&self, span: Span) -> Option<f64> {
        self.integrate(span, |_, (_, later), _| later)
    }

    /// Returns the integral over a span in seconds. `mean` returns the mean of a part, given the
    /// values before and after it, and the time of its middle.
    fn integrate(
        &self,
        span: Span,
        mean: impl Fn((f64, f64), (f64, f64), f64) -> f64,
    ) -> Option<f64> {
        let first = self
            .0
            .partition_point(|(at_ms, _)| *at_ms <= span.from_ms)
            .checked_sub(1)?;
        let mut sum = 0.0;
        for (one, other) in self.0.iter().skip(first).zip(self.0.iter().skip(first + 1)) {
            if other.0 - one.0 > MAX_GAP_MS {
                return None;
            }
            let (start_ms, end_ms) = (one.0.max(span.from_ms), other.0.min(span.to_ms));
            sum +=
                mean(*one, *other, f64::midpoint(start_ms, end_ms)) * (end_ms - start_ms) / 1000.0;
            if other.0 >= span.to_ms {
                return Some(sum);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::TraceMetric;

    fn make_trace(start_ms: u64, step_ms: u32, values: &[f64]) -> Trace {
        Trace {
            index: 0,
            uuid: None,
            metric: TraceMetric::PowerWatts,
            start_us: start_ms * 1000,
            offsets_us: (0..values.len() as u32)
                .map(|at| at * step_ms * 1000)
                .collect(),
            values: values.to_vec(),
            gap: false,
        }
    }

    #[test]
    fn integral_starts_and_ends_between_values() {
        let mut line = Timeline::default();
        line.add(&make_trace(1000, 100, &[0.0, 100.0, 100.0, 300.0]));
        line.add(&make_trace(1300, 100, &[300.0, 300.0]));
        let near = |one: Option<f64>, other: f64| (one.unwrap() - other).abs() < 1e-9;
        assert!(near(line.integrate_linear(Span::new(1000, 1100)), 5.0));
        assert!(near(
            line.integrate_linear(Span::new(1050, 1250)),
            3.75 + 10.0 + 7.5
        ));
        assert!(
            near(
                line.integrate_steps(Span::new(1050, 1250)),
                5.0 + 10.0 + 15.0
            ),
            "what is recorded later is of the time before"
        );
        assert_eq!(line.integrate_linear(Span::new(999, 1100)), None);
        assert_eq!(
            line.integrate_linear(Span::new(1100, 1401)),
            None,
            "what is not recorded yet"
        );
    }

    #[test]
    fn gap_has_no_integral() {
        let mut line = Timeline::default();
        line.add(&make_trace(1000, 600, &[1.0, 1.0, 1.0]));
        assert_eq!(line.integrate_linear(Span::new(1000, 1700)), None);
    }

    #[test]
    fn values_older_than_limit_are_removed() {
        let mut line = Timeline::default();
        for second in 0..100 {
            line.add(&make_trace(second * 1000, 100, &[1.0; 10]));
        }
        assert_eq!(line.0.len(), 301);
    }
}
