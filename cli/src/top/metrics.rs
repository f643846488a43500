//! Fields that can be charted, and how charts show their values.

use std::sync::LazyLock;

use gpumon_probe::{
    model::{
        HostSample,
        fields::{CHARTS, Field, GPU_FIELDS, HOST_FIELDS, Unit, charted_fields, overview_fields},
    },
    units::format_byte_size,
};
use ratatui::style::Style;

use super::{text::format_rate, theme::Theme};
use crate::terminal::screen::Glyphs;

pub(super) static METRICS: LazyLock<Vec<&Field>> =
    LazyLock::new(|| charted_fields(GPU_FIELDS).collect());

/// All fields of the host that can be charted.
pub(super) static HOST_METRICS: LazyLock<Vec<&Field<HostSample>>> =
    LazyLock::new(|| charted_fields(HOST_FIELDS).collect());

/// Returns the metrics that are charted by default, as positions in [`METRICS`].
pub(super) fn default_metrics() -> Vec<usize> {
    overview_fields()
        .filter_map(|field| find_metric_position(metric_key(field)))
        .collect()
}

/// The metric of the causes that limit a GPU, whose fields are stacked.
const LIMITS: &str = "limits";

/// Returns `true` if the metric is the share of a cause that limits a GPU.
pub(super) fn is_limit(metric: usize) -> bool {
    metric_key(METRICS[metric]) == LIMITS
}

pub(super) fn metric_key(field: &Field) -> &'static str {
    field.chart.map_or(field.id, |chart| chart.key)
}

pub(super) fn metric_label(metric: usize) -> &'static str {
    let limits = CHARTS.iter().find(|(name, _)| *name == LIMITS);
    match limits.filter(|_| is_limit(metric)) {
        Some((_, title)) => title,
        None => METRICS[metric].label,
    }
}

/// Returns the metrics that the user can choose, as positions in [`METRICS`]. The first of several
/// fields that are stacked stands for all of them.
pub(super) fn list_metrics() -> impl Iterator<Item = usize> {
    (0..METRICS.len())
        .filter(|metric| find_metric_position(metric_key(METRICS[*metric])) == Some(*metric))
}

/// Returns the position of a metric in [`METRICS`].
pub(super) fn find_metric_position(id: &str) -> Option<usize> {
    METRICS.iter().position(|field| metric_key(field) == id)
}

pub(super) trait ChartUnit {
    /// Formats a value, such as `64 %`, `78.2 GiB`, or `692 W`.
    fn format(self, value: f64, glyphs: Glyphs) -> String;
    fn axis_start(self) -> f64;
    /// Returns the upper end of a chart's axis. `largest` is the largest value to draw.
    fn axis_end(self, largest: f64) -> f64;
    fn style(self, theme: &Theme) -> Style;
}

impl ChartUnit for Unit {
    fn format(self, value: f64, glyphs: Glyphs) -> String {
        match self {
            Self::Percent => format!("{value:.0} %"),
            Self::Bytes => format_byte_size(value),
            Self::Watts => format!("{value:.0} W"),
            Self::Joules => format!("{value:.0} J"),
            Self::Celsius | Self::CelsiusDifference => format!("{value:.0} {}", glyphs.celsius()),
            Self::Megahertz => format!("{value:.0} MHz"),
            Self::BytesPerSecond => format_rate(value),
            Self::Seconds => format!("{value:.0} s"),
            Self::Count => format!("{value:.0}"),
        }
    }

    fn axis_start(self) -> f64 {
        if self == Self::Celsius { 20.0 } else { 0.0 }
    }

    fn axis_end(self, largest: f64) -> f64 {
        match self {
            Self::Percent | Self::Celsius => 100.0_f64.max(largest),
            // Axes for bytes end at a power of two, because their labels use binary units.
            Self::Bytes => largest.max(1.0).log2().ceil().exp2(),
            _ => round_up_axis_end(largest),
        }
    }

    fn style(self, theme: &Theme) -> Style {
        match self {
            Self::Percent | Self::Seconds | Self::Count => theme.utilization,
            Self::Bytes => theme.memory,
            Self::Watts | Self::Joules => theme.power,
            Self::Celsius | Self::CelsiusDifference | Self::Megahertz => theme.temperature,
            Self::BytesPerSecond => theme.traffic,
        }
    }
}

/// Rounds up to 1, 2 or 5 times a power of ten, so that an axis does not change with every sample.
fn round_up_axis_end(value: f64) -> f64 {
    if value <= 1.0 {
        return 1.0;
    }
    let power = 10f64.powf(value.log10().floor());
    [1.0, 2.0, 5.0, 10.0]
        .into_iter()
        .map(|step| step * power)
        .find(|end| *end >= value)
        .unwrap_or(value)
}

#[cfg(test)]
mod tests {
    use gpumon_probe::model::LimitClass;

    use super::*;

    #[test]
    fn default_metrics_are_utilization_memory_power_temperature() {
        let keys = default_metrics()
            .into_iter()
            .map(|place| metric_key(METRICS[place]));
        assert!(keys.eq(["utilization", "memory", "power", "temperature"]));
    }

    #[test]
    fn limits_are_one_metric_of_all_causes() {
        let fields = (0..METRICS.len()).filter(|metric| is_limit(*metric));
        let ids = fields.map(|metric| METRICS[metric].id.to_owned());
        assert!(ids.eq(LimitClass::ALL.map(|cause| format!("limits.{}_percent", cause.name()))));
        let [limits] = list_metrics()
            .filter(|metric| is_limit(*metric))
            .collect::<Vec<_>>()[..]
        else {
            panic!("there is one metric");
        };
        assert_eq!(metric_label(limits), "Limited by");
        assert_eq!(find_metric_position("limits"), Some(limits));
    }

    #[test]
    fn memory_axes_end_at_powers_of_two() {
        for (largest, power) in [(0.0, 0), (213e6, 28), (2f64.powi(33), 33), (1e19, 64)] {
            assert_eq!(
                Unit::Bytes.axis_end(largest).to_bits(),
                2f64.powi(power).to_bits(),
                "{largest}"
            );
        }
    }

    #[test]
    fn axes_end_at_round_numbers() {
        for (largest, end) in [
            (0.0, 1.0),
            (1.5, 2.0),
            (2.1, 5.0),
            (7e9, 1e10),
            (1e10, 1e10),
        ] {
            let ceiling = Unit::BytesPerSecond.axis_end(largest);
            assert!((ceiling - end).abs() < 1e-6 * end, "{largest}: {ceiling}");
        }
    }
}
