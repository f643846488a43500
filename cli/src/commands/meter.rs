//! One GPU, summed up over time.

use std::ops::Range;

use gpumon_history::span::{ConditionSpan, DeviceSpan, HistorySpan, Series};
use gpumon_probe::{
    model::ConditionKind,
    stat::{Stat, Window},
    usage::EnergyMeter,
};

use super::figures::Figures;

/// The readings that figures are made of, by their names in the catalogue.
pub(super) const METRICS: [&str; 6] = [
    "utilization.gpu_percent",
    "activity.sm_percent",
    "activity.tensor_percent",
    "memory.used_bytes",
    "power.draw_watts",
    "power.energy_joules_total",
];

/// What was read of a GPU for some time.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Point {
    /// How long it stands for, in milliseconds.
    pub(super) time_ms: u64,
    /// In the order of [`METRICS`].
    pub(super) stats: [Option<Stat>; METRICS.len()],
    /// When the counter of energy was read.
    pub(super) counted_ms: u64,
    /// Whether the clocks were reduced; `None` where that is known otherwise.
    pub(super) is_throttled: Option<bool>,
}

#[derive(Debug, Default)]
pub(super) struct Meter {
    time_ms: u64,
    /// In the order of [`METRICS`].
    windows: [Window; METRICS.len()],
    throttled: Window,
    idle: Window,
    energy: EnergyMeter,
}

impl Point {
    /// Returns the readings of a device at a place of a span.
    pub(super) fn new(span: &HistorySpan, device: &DeviceSpan, place: usize) -> Self {
        let stats = METRICS.map(|metric| find_series(device, metric)?.stat_at(place));
        let [utilization, _, _, memory, watts, _] = stats;
        if utilization.or(memory).or(watts).is_none() {
            return Self::default();
        }
        let time_ms = time_ms(span, place);
        Self {
            time_ms,
            stats,
            // The last of its time.
            counted_ms: span.times_ms[place] + time_ms,
            is_throttled: None,
        }
    }

    /// The largest amount of memory in that time.
    pub(super) fn memory_bytes(&self) -> Option<f64> {
        let [_, _, _, memory, ..] = self.stats;
        memory.map(|stat| stat.max)
    }
}

impl Meter {
    pub(super) fn add(&mut self, point: &Point) {
        self.time_ms += point.time_ms;
        let weight = point.time_ms as f64;
        for (window, stat) in self.windows.iter_mut().zip(point.stats) {
            if let Some(stat) = stat {
                window.merge(stat, weight);
            }
        }
        let [utilization, sm_active, .., joules] = point.stats;
        // Nothing ran in all of it.
        let is_idle = utilization.or(sm_active).map(|stat| stat.max <= 0.0);
        for (window, is) in [
            (&mut self.idle, is_idle),
            (&mut self.throttled, point.is_throttled),
        ] {
            if let Some(is) = is {
                window.add(if is { 100.0 } else { 0.0 }, weight);
            }
        }
        if let Some(joules) = joules {
            self.energy.add(joules.mean, point.counted_ms);
        }
    }

    /// What is added from here on does not follow upon what was added before.
    pub(super) fn interrupt(&mut self) {
        self.energy.interrupt();
    }

    /// How long it was read, in milliseconds.
    pub(super) fn time_ms(&self) -> u64 {
        self.time_ms
    }

    /// The share of time in which nothing ran, in percent.
    pub(super) fn idle_percent(&self) -> Option<f64> {
        self.idle.mean()
    }

    /// Returns the figures. `throttled` is the share of time with reduced clocks in percent, if the
    /// points do not have it.
    pub(super) fn to_figures(&self, throttled: Option<f64>) -> Figures {
        let [utilization, sm_active, tensor_active, memory, watts, _] = &self.windows;
        Figures([
            utilization.mean(),
            utilization.max(),
            sm_active.mean(),
            tensor_active.mean(),
            memory.max(),
            self.energy.extend_to(self.time_ms, watts.mean()),
            watts.mean(),
            self.throttled.mean().or(throttled),
        ])
    }
}

/// Returns the time that a point of a span covers, in milliseconds. Gaps between samples are left
/// out.
pub(super) fn time_ms(span: &HistorySpan, place: usize) -> u64 {
    match span.times_ms.get(place + 1) {
        Some(next) => (next - span.times_ms[place]).min(span.resolution_ms * 5 / 2),
        None => span.resolution_ms,
    }
}

/// Returns a metric of a GPU, or the same of a MIG device.
pub(super) fn find_series<'a>(device: &'a DeviceSpan, metric: &str) -> Option<&'a Series> {
    let of_gpu = device.metrics.get(metric);
    of_gpu.or_else(|| device.metrics.get(&format!("mig.{metric}")))
}

/// Returns the share of these times in which a device's clocks were reduced, in percent.
pub(super) fn throttled_percent<'a>(
    conditions: impl IntoIterator<Item = &'a ConditionSpan>,
    times: &[Range<u64>],
) -> f64 {
    let throttled = conditions
        .into_iter()
        .filter(|span| matches!(span.condition.kind, ConditionKind::Throttled { .. }))
        .map(|span| span.from_ms..span.to_ms.unwrap_or(u64::MAX));
    let throttled_ms: u64 = throttled
        .flat_map(|throttled| {
            times
                .iter()
                .map(move |time| overlapping_ms(time, &throttled))
        })
        .sum();
    let all_ms: u64 = times
        .iter()
        .map(|time| time.end.saturating_sub(time.start))
        .sum();
    (100.0 * throttled_ms as f64 / all_ms.max(1) as f64).min(100.0)
}

pub(super) fn overlapping_ms(one: &Range<u64>, other: &Range<u64>) -> u64 {
    one.end
        .min(other.end)
        .saturating_sub(one.start.max(other.start))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn second(watts: f64, joules_total: Option<(f64, u64)>) -> Point {
        let (joules, counted_ms) = joules_total.unzip();
        let stats = [None, None, None, None, Some(watts), joules];
        Point {
            time_ms: 1000,
            stats: stats.map(|value| value.map(Stat::of)),
            counted_ms: counted_ms.unwrap_or(0),
            is_throttled: None,
        }
    }

    fn joules(points: &[Point]) -> Option<f64> {
        let mut meter = Meter::default();
        for point in points {
            meter.add(point);
        }
        meter.to_figures(None).0[5]
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
            stats: [Some(Stat::of(percent)), None, None, None, None, None],
            is_throttled: Some(is_throttled),
            ..Point::default()
        };
        meter.add(&point(9_000, 0.0, false));
        meter.add(&point(1_000, 100.0, true));
        let figures = meter.to_figures(Some(77.0)).0;
        assert_eq!(
            (figures[0], figures[1], figures[7]),
            (Some(10.0), Some(100.0), Some(10.0))
        );
    }
}
