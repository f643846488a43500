//! The figures, such as utilization and energy, by which `gpumon compare` and `gpumon job` compare
//! runs.

use std::ops::Range;

use gpumon_history::span::{ConditionSpan, DeviceSpan, HistorySpan, Series};
use gpumon_probe::{
    model::ConditionKind,
    stat::{Stat, Window},
    usage::EnergyMeter,
};
use serde_json::{Map, Number, Value};

use super::show::csv::format_rounded;
use crate::terminal::{
    columns::Column,
    units::{format_energy_with_cost, format_gib},
};

/// The definition of a figure that is compared.
pub(super) struct Figure {
    /// The figure's JSON key, which ends with the unit.
    pub(super) key: &'static str,
    heading: &'static str,
    unit: Unit,
    /// The method by which the values of several GPUs are combined into one.
    of_all: Combination,
    /// The figure's rank. On a narrow terminal, figures with the highest rank are left out first.
    rank: u8,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Unit {
    /// A percentage. Two percentages are compared by their difference in percentage points. Values
    /// of all other units are compared by their ratio.
    Percent,
    Bytes,
    Joules,
    Watts,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Combination {
    Mean,
    Most,
    Sum,
}

impl Figure {
    const fn new(
        key: &'static str,
        heading: &'static str,
        unit: Unit,
        of_all: Combination,
        rank: u8,
    ) -> Self {
        Self {
            key,
            heading,
            unit,
            of_all,
            rank,
        }
    }

    pub(super) fn column(&self) -> Column {
        Column::new_right_aligned(self.heading, self.rank)
    }
}

pub(super) const FIGURE_COUNT: usize = 8;

/// The definitions of all figures, in the order of the columns and of [`Figures`].
pub(super) const FIGURES: [Figure; FIGURE_COUNT] = [
    Figure::new(
        "gpu_utilization_mean_percent",
        "GPU util",
        Unit::Percent,
        Combination::Mean,
        0,
    ),
    Figure::new(
        "gpu_utilization_peak_percent",
        "Peak util",
        Unit::Percent,
        Combination::Most,
        4,
    ),
    Figure::new(
        "sm_active_mean_percent",
        "SM active",
        Unit::Percent,
        Combination::Mean,
        2,
    ),
    Figure::new(
        "tensor_active_mean_percent",
        "Tensor",
        Unit::Percent,
        Combination::Mean,
        3,
    ),
    Figure::new(
        "memory_peak_bytes",
        "Peak memory",
        Unit::Bytes,
        Combination::Sum,
        0,
    ),
    Figure::new("energy_joules", "Energy", Unit::Joules, Combination::Sum, 0),
    Figure::new(
        "power_mean_watts",
        "Mean power",
        Unit::Watts,
        Combination::Sum,
        1,
    ),
    Figure::new(
        "throttled_percent",
        "Throttled",
        Unit::Percent,
        Combination::Mean,
        5,
    ),
];

/// The index of the peak memory in [`FIGURES`].
pub(super) const MEMORY_PEAK_INDEX: usize = 4;

/// The value of each figure; `None` if it was not measured.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Figures(pub(super) [Option<f64>; FIGURE_COUNT]);

/// The differences between two sides: percentage points or ratios, depending on each figure's unit.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Difference([Option<f64>; FIGURE_COUNT]);

impl Figures {
    /// Combines the figures of several GPUs. `memory_peak` is the maximum memory that all GPUs
    /// together used at the same time.
    pub(super) fn combine<'a>(
        gpus: &(impl Iterator<Item = &'a Self> + Clone),
        memory_peak: Option<f64>,
    ) -> Self {
        let mut all = Self::default();
        for (place, figure) in FIGURES.iter().enumerate() {
            let values: Window = gpus.clone().filter_map(|gpu| gpu.0[place]).collect();
            all.0[place] = match figure.of_all {
                Combination::Mean => values.mean(),
                Combination::Most => values.max(),
                Combination::Sum => values.weighted_sum(),
            };
        }
        all.0[MEMORY_PEAK_INDEX] = memory_peak.or(all.0[MEMORY_PEAK_INDEX]);
        all
    }

    /// Returns the differences between these figures and `others`: percentages of `others` are
    /// subtracted from these percentages, and all other values are divided by the values of
    /// `others`.
    pub(super) fn compare_with(&self, others: &Self) -> Difference {
        let mut difference = Difference::default();
        for (place, figure) in FIGURES.iter().enumerate() {
            let values = self.0[place].zip(others.0[place]);
            difference.0[place] = values.and_then(|(own, other)| match figure.unit {
                Unit::Percent => Some(own - other),
                _ => calculate_ratio(other, own),
            });
        }
        difference
    }

    pub(super) fn to_json(&self) -> Value {
        build_json_object(&self.0, |figure| figure.key.to_owned())
    }

    pub(super) fn format_cells(&self) -> impl Iterator<Item = String> {
        FIGURES.iter().zip(self.0).map(|(figure, value)| {
            value.map_or_else(
                || "-".to_owned(),
                |value| match figure.unit {
                    Unit::Percent => format!("{value:.0} %"),
                    Unit::Bytes => format!("{} GiB", format_gib(value as u64)),
                    Unit::Joules => format_energy_with_cost(value),
                    Unit::Watts => format!("{value:.0} W"),
                },
            )
        })
    }
}

impl Difference {
    pub(super) fn to_json(&self) -> Value {
        build_json_object(&self.0, |figure| {
            // The last word of a key is the unit of the figure, which a difference does not have.
            let name = figure.key.trim_end_matches(|letter: char| letter != '_');
            match figure.unit {
                Unit::Percent => format!("{name}points"),
                _ => format!("{name}ratio"),
            }
        })
    }

    pub(super) fn format_cells(&self) -> impl Iterator<Item = String> {
        FIGURES
            .iter()
            .zip(self.0)
            .map(|(figure, value)| match (figure.unit, value) {
                (_, None) => "-".to_owned(),
                (Unit::Percent, Some(points)) => format!("{points:+.0}"),
                (_, Some(ratio)) => format_change(ratio),
            })
    }
}

/// Formats a ratio as a percentage, such as `+12 %` for 1.12.
pub(super) fn format_change(ratio: f64) -> String {
    let percent = (ratio - 1.0) * 100.0;
    if percent.abs() < 9.95 {
        format!("{percent:+.1} %")
    } else {
        format!("{percent:+.0} %")
    }
}

/// Returns `second / first`; `None` if `first` is not positive.
pub(super) fn calculate_ratio(first: f64, second: f64) -> Option<f64> {
    (first > 0.0).then(|| second / first)
}

fn build_json_object(
    values: &[Option<f64>; FIGURE_COUNT],
    key: impl Fn(&Figure) -> String,
) -> Value {
    let number = |value: Option<f64>| {
        let value = value
            .and_then(|value| format_rounded(value).parse().ok())
            .and_then(Number::from_f64);
        value.map_or(Value::Null, Value::Number)
    };
    FIGURES
        .iter()
        .zip(values)
        .map(|(figure, value)| (key(figure), number(*value)))
        .collect::<Map<_, _>>()
        .into()
}

/// The IDs of the metrics from which figures are computed.
pub(super) const METRICS: [&str; 6] = [
    "utilization.gpu_percent",
    "activity.sm_percent",
    "activity.tensor_percent",
    "memory.used_bytes",
    "power.draw_watts",
    "power.energy_joules_total",
];

/// The readings of a device over a short time.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Point {
    /// The duration that the point covers, in milliseconds.
    pub(super) time_ms: u64,
    /// The values of the metrics, in the order of [`METRICS`].
    pub(super) stats: [Option<Stat>; METRICS.len()],
    /// The time at which the energy counter was read for this point, in milliseconds since 1970.
    pub(super) counted_ms: u64,
    /// Whether the clocks were reduced; `None` if unknown.
    pub(super) is_throttled: Option<bool>,
}

#[derive(Debug, Default)]
pub(super) struct Meter {
    time_ms: u64,
    /// The sums of the metrics' values, in the order of [`METRICS`].
    windows: [Window; METRICS.len()],
    throttled: Window,
    idle: Window,
    energy: EnergyMeter,
}

impl Point {
    /// Returns the point at the index `place` of a span, with the readings of a device.
    pub(super) fn new(span: &HistorySpan, device: &DeviceSpan, place: usize) -> Self {
        let stats = METRICS.map(|metric| find_series(device, metric)?.stat_at(place));
        let [utilization, _, _, memory, watts, _] = stats;
        if utilization.or(memory).or(watts).is_none() {
            return Self::default();
        }
        let time_ms = point_duration_ms(span, place);
        Self {
            time_ms,
            stats,
            // The energy counter was read at the end of the time that the point covers.
            counted_ms: span.times_ms[place] + time_ms,
            is_throttled: None,
        }
    }

    /// Returns the maximum memory in use within the period that the point covers, in bytes.
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
        // A maximum of 0 means that the GPU was idle for the whole time that the point covers.
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

    /// Marks a gap in the readings, so that energy is not counted across it.
    pub(super) fn mark_gap(&mut self) {
        self.energy.exclude_until_next_reading();
    }

    /// Returns the total time covered by readings, in milliseconds.
    pub(super) fn covered_ms(&self) -> u64 {
        self.time_ms
    }

    /// Returns the percentage of time in which the GPU was idle.
    pub(super) fn idle_percent(&self) -> Option<f64> {
        self.idle.mean()
    }

    /// Returns the figures. `throttled`, the percentage of time with reduced clocks, is used only
    /// if the points do not record whether clocks were reduced.
    pub(super) fn to_figures(&self, throttled: Option<f64>) -> Figures {
        let [utilization, sm_active, tensor_active, memory, watts, _] = &self.windows;
        Figures([
            utilization.mean(),
            utilization.max(),
            sm_active.mean(),
            tensor_active.mean(),
            memory.max(),
            self.energy.extrapolate_energy(self.time_ms, watts.mean()),
            watts.mean(),
            self.throttled.mean().or(throttled),
        ])
    }
}

/// Returns the time that a span's point covers, in milliseconds, excluding gaps between samples.
pub(super) fn point_duration_ms(span: &HistorySpan, place: usize) -> u64 {
    match span.times_ms.get(place + 1) {
        Some(next) => (next - span.times_ms[place]).min(span.resolution_ms * 5 / 2),
        None => span.resolution_ms,
    }
}

/// Returns the series of a GPU's metric, or of the corresponding metric of a MIG device.
pub(super) fn find_series<'a>(device: &'a DeviceSpan, metric: &str) -> Option<&'a Series> {
    let of_gpu = device.metrics.get(metric);
    of_gpu.or_else(|| device.metrics.get(&format!("mig.{metric}")))
}

/// Returns the percentage of the time in `times` during which a device's clocks were reduced.
pub(super) fn calculate_throttled_percent<'a>(
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
                .map(move |time| calculate_overlap_ms(time, &throttled))
        })
        .sum();
    let all_ms: u64 = times
        .iter()
        .map(|time| time.end.saturating_sub(time.start))
        .sum();
    (100.0 * throttled_ms as f64 / all_ms.max(1) as f64).min(100.0)
}

pub(super) fn calculate_overlap_ms(one: &Range<u64>, other: &Range<u64>) -> u64 {
    one.end
        .min(other.end)
        .saturating_sub(one.start.max(other.start))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_compared_by_percentage_points_or_ratio() {
        let a = Figures([
            Some(80.0),
            Some(100.0),
            None,
            Some(10.0),
            Some(64e9),
            Some(3.6e6),
            Some(500.0),
            Some(0.0),
        ]);
        let b = Figures([
            Some(90.0),
            Some(100.0),
            Some(5.0),
            Some(5.0),
            Some(32e9),
            Some(3.96e6),
            Some(500.0),
            Some(12.0),
        ]);
        let difference = b.compare_with(&a);
        let cells: Vec<_> = difference.format_cells().collect();
        assert_eq!(
            cells,
            ["+10", "+0", "-", "-5", "-50 %", "+10 %", "+0.0 %", "+12"]
        );
        assert_eq!(difference.to_json()["energy_ratio"], 1.1);
        assert_eq!(difference.to_json()["gpu_utilization_mean_points"], 10.0);
        assert_eq!(difference.to_json()["sm_active_mean_points"], Value::Null);
        let nothing = b.compare_with(&Figures([Some(0.0); FIGURE_COUNT]));
        assert_eq!(nothing.0[5], None, "nothing is a multiple of 0");
    }

    #[test]
    fn combined_figures_sum_energy_and_keep_given_memory() {
        let gpu = |joules: f64, bytes| {
            Figures([
                Some(50.0),
                Some(joules),
                None,
                None,
                Some(bytes),
                Some(joules),
                Some(100.0),
                Some(10.0),
            ])
        };
        let gpus = [gpu(1.0, 10.0), gpu(3.0, 20.0)];
        let all = Figures::combine(&gpus.iter(), Some(25.0));
        assert_eq!(
            all.0,
            [
                Some(50.0),
                Some(3.0),
                None,
                None,
                Some(25.0),
                Some(4.0),
                Some(200.0),
                Some(10.0)
            ]
        );
    }

    fn make_point(watts: f64, joules_total: Option<(f64, u64)>) -> Point {
        let (joules, counted_ms) = joules_total.unzip();
        let stats = [None, None, None, None, Some(watts), joules];
        Point {
            time_ms: 1000,
            stats: stats.map(|value| value.map(Stat::from_value)),
            counted_ms: counted_ms.unwrap_or(0),
            is_throttled: None,
        }
    }

    fn find_joules(points: &[Point]) -> Option<f64> {
        let mut meter = Meter::default();
        for point in points {
            meter.add(point);
        }
        meter.to_figures(None).0[5]
    }

    #[test]
    fn energy_without_counter_is_estimated() {
        let counted = [(0.0, 0), (100.0, 1000), (300.0, 2000)]
            .map(|counter| make_point(150.0, Some(counter)));
        assert_eq!(
            find_joules(&counted),
            Some(300.0 + 150.0),
            "two seconds counted, one estimated"
        );
        assert_eq!(
            find_joules(&[make_point(100.0, None), make_point(200.0, None)]),
            Some(300.0)
        );
        let reloaded =
            [(500.0, 0), (0.0, 1000), (90.0, 2000)].map(|counter| make_point(100.0, Some(counter)));
        assert_eq!(find_joules(&reloaded), Some(90.0 + 200.0));
        assert_eq!(
            find_joules(&[Point {
                time_ms: 1000,
                ..Point::default()
            }]),
            None
        );
    }

    #[test]
    fn means_are_weighted_by_time() {
        let mut meter = Meter::default();
        let point = |time_ms, percent, is_throttled| Point {
            time_ms,
            stats: [
                Some(Stat::from_value(percent)),
                None,
                None,
                None,
                None,
                None,
            ],
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
