//! One GPU, summed up over time.

use gpumon_probe::stat::{Stat, Window};

use super::figures::Figures;

/// What was read of a GPU for some time.
#[derive(Debug, Clone, Copy, Default)]
pub(in crate::commands) struct Point {
    /// How long it stands for, in milliseconds.
    pub(in crate::commands) time_ms: u64,
    pub(in crate::commands) utilization: Option<Stat>,
    pub(in crate::commands) sm_active: Option<f64>,
    pub(in crate::commands) tensor_active: Option<f64>,
    /// The largest in that time.
    pub(in crate::commands) memory_bytes: Option<f64>,
    pub(in crate::commands) watts: Option<f64>,
    /// The counter of energy, and when it was read.
    pub(in crate::commands) joules_total: Option<(f64, u64)>,
    /// Whether the clocks were reduced; `None` where that is known otherwise.
    pub(in crate::commands) is_throttled: Option<bool>,
}

#[derive(Debug, Default)]
pub(in crate::commands) struct Meter {
    time_ms: u64,
    utilization: Window,
    sm_active: Window,
    tensor_active: Window,
    memory: Window,
    watts: Window,
    throttled: Window,
    idle: Window,
    /// By how much the counter of energy has grown, and in how much time.
    joules: f64,
    counted_ms: u64,
    joules_before: Option<(f64, u64)>,
}

impl Meter {
    pub(in crate::commands) fn add(&mut self, point: &Point) {
        let time_ms = point.time_ms;
        self.time_ms += time_ms;
        if let Some(utilization) = point.utilization {
            self.utilization.merge(utilization, time_ms as f64);
        }
        // Nothing ran in all of it.
        let busiest = point.utilization.map(|stat| stat.max).or(point.sm_active);
        let share = |is: bool| if is { 100.0 } else { 0.0 };
        for (window, value) in [
            (&mut self.sm_active, point.sm_active),
            (&mut self.tensor_active, point.tensor_active),
            (&mut self.memory, point.memory_bytes),
            (&mut self.watts, point.watts),
            (&mut self.idle, busiest.map(|percent| share(percent <= 0.0))),
            (&mut self.throttled, point.is_throttled.map(share)),
        ] {
            if let Some(value) = value {
                window.add(value, time_ms as f64);
            }
        }
        let Some((joules, at_ms)) = point.joules_total else {
            return;
        };
        if let Some((before, before_ms)) = self.joules_before {
            // It begins anew when the driver is loaded; what it counted until then is estimated from the power.
            if joules >= before && at_ms >= before_ms {
                self.joules += joules - before;
                self.counted_ms += at_ms - before_ms;
            }
        }
        self.joules_before = Some((joules, at_ms));
    }

    /// What is added from here on does not follow upon what was added before.
    pub(in crate::commands) fn interrupt(&mut self) {
        self.joules_before = None;
    }

    /// How long it was read, in milliseconds.
    pub(in crate::commands) fn time_ms(&self) -> u64 {
        self.time_ms
    }

    /// The share of time in which nothing ran, in percent.
    pub(in crate::commands) fn idle_percent(&self) -> Option<f64> {
        self.idle.mean()
    }

    /// The share of time with reduced clocks, where it is known otherwise, in percent.
    pub(in crate::commands) fn figures(&self, throttled: Option<f64>) -> Figures {
        let watts = self.watts.mean();
        // The counter is read every few seconds: at its ends, and where there is none, power tells.
        let uncounted_s = self.time_ms.saturating_sub(self.counted_ms) as f64 / 1000.0;
        let estimated = watts.map(|watts| watts * uncounted_s);
        let joules = if self.counted_ms > 0 {
            Some(self.joules + estimated.unwrap_or(0.0))
        } else {
            estimated
        };
        Figures([
            self.utilization.mean(),
            self.utilization.stat().map(|stat| stat.max),
            self.sm_active.mean(),
            self.tensor_active.mean(),
            self.memory.stat().map(|stat| stat.max),
            joules,
            watts,
            self.throttled.mean().or(throttled),
        ])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn second(watts: f64, joules_total: Option<(f64, u64)>) -> Point {
        Point {
            time_ms: 1000,
            watts: Some(watts),
            joules_total,
            ..Point::default()
        }
    }

    fn joules(points: &[Point]) -> Option<f64> {
        let mut meter = Meter::default();
        for point in points {
            meter.add(point);
        }
        meter.figures(None).0[5]
    }

    #[test]
    fn energy_is_counted_where_there_is_a_counter_and_estimated_elsewhere() {
        let counted =
            [(0.0, 0), (100.0, 1000), (300.0, 2000)].map(|counter| second(150.0, Some(counter)));
        assert_eq!(
            joules(&counted),
            Some(300.0 + 150.0),
            "two seconds counted, one estimated"
        );
        assert_eq!(
            joules(&[second(100.0, None), second(200.0, None)]),
            Some(300.0)
        );
        let reloaded =
            [(500.0, 0), (0.0, 1000), (90.0, 2000)].map(|counter| second(100.0, Some(counter)));
        assert_eq!(joules(&reloaded), Some(90.0 + 200.0));
        assert_eq!(
            joules(&[Point {
                time_ms: 1000,
                ..Point::default()
            }]),
            None
        );
    }

    #[test]
    fn means_are_weighted_by_time_and_peaks_are_not() {
        let mut meter = Meter::default();
        let point = |time_ms, percent, is_throttled| Point {
            time_ms,
            utilization: Some(Stat::of(percent)),
            is_throttled: Some(is_throttled),
            ..Point::default()
        };
        meter.add(&point(9_000, 0.0, false));
        meter.add(&point(1_000, 100.0, true));
        let figures = meter.figures(Some(77.0)).0;
        assert_eq!(
            (figures[0], figures[1], figures[7]),
            (Some(10.0), Some(100.0), Some(10.0))
        );
    }
}
