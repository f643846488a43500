//! The fields that can be charted, and how charts show them.

use std::sync::LazyLock;

use gpumon_probe::{
    model::{
        HostSample,
        fields::{Field, GPU_FIELDS, HOST_FIELDS, Unit, charted, overview},
    },
    units::byte_size,
};

use super::{text::rate, theme::Meaning};
use crate::terminal::glyphs::Glyphs;

pub(super) static METRICS: LazyLock<Vec<&Field>> = LazyLock::new(|| charted(GPU_FIELDS).collect());

/// All host fields that can be charted.
pub(super) static HOST_METRICS: LazyLock<Vec<&Field<HostSample>>> =
    LazyLock::new(|| charted(HOST_FIELDS).collect());

/// Returns the positions in [`METRICS`] of the metrics that are charted by default.
pub(super) fn default_metrics() -> Vec<usize> {
    overview()
        .filter_map(|field| position(key(field)))
        .collect()
}

pub(super) fn key(field: &Field) -> &'static str {
    field.chart.map_or(field.id, |chart| chart.key)
}

/// Returns the position of a metric in [`METRICS`].
pub(super) fn position(id: &str) -> Option<usize> {
    METRICS.iter().position(|field| key(field) == id)
}

pub(super) trait Drawn {
    /// Formats a value, such as `64 %`, `78.2 GiB`, or `692 W`.
    fn format(self, value: f64, glyphs: Glyphs) -> String;
    fn floor(self) -> f64;
    /// Returns the upper end of the axis if only the largest value to be drawn is known.
    fn ceiling(self, largest: f64) -> f64;
    fn meaning(self) -> Meaning;
}

impl Drawn for Unit {
    fn format(self, value: f64, glyphs: Glyphs) -> String {
        match self {
            Self::Percent => format!("{value:.0} %"),
            Self::Bytes => byte_size(value),
            Self::Watts => format!("{value:.0} W"),
            Self::Joules => format!("{value:.0} J"),
            Self::Celsius | Self::CelsiusDifference => format!("{value:.0} {}", glyphs.celsius()),
            Self::Megahertz => format!("{value:.0} MHz"),
            Self::BytesPerSecond => rate(value),
            Self::Seconds => format!("{value:.0} s"),
            Self::Count => format!("{value:.0}"),
        }
    }

    fn floor(self) -> f64 {
        if self == Self::Celsius { 20.0 } else { 0.0 }
    }

    fn ceiling(self, largest: f64) -> f64 {
        match self {
            Self::Percent | Self::Celsius => 100.0_f64.max(largest),
            // Byte axes end at a power of two, because their labels have binary units.
            Self::Bytes => largest.max(1.0).log2().ceil().exp2(),
            _ => round_up(largest),
        }
    }

    fn meaning(self) -> Meaning {
        match self {
            Self::Percent | Self::Seconds | Self::Count => Meaning::Utilization,
            Self::Bytes => Meaning::Memory,
            Self::Watts | Self::Joules => Meaning::Power,
            Self::Celsius | Self::CelsiusDifference | Self::Megahertz => Meaning::Temperature,
            Self::BytesPerSecond => Meaning::Traffic,
        }
    }
}

/// Rounds up to the next 1, 2 or 5 times a power of ten, so that an axis does not change with every
/// sample.
fn round_up(value: f64) -> f64 {
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
    use super::*;

    #[test]
    fn what_is_charted_unless_others_are_chosen_exists() {
        let keys = default_metrics()
            .into_iter()
            .map(|place| key(METRICS[place]));
        assert!(keys.eq(["utilization", "memory", "power", "temperature"]));
    }

    #[test]
    fn axes_of_memory_end_at_round_binary_numbers() {
        for (largest, power) in [(0.0, 0), (213e6, 28), (2f64.powi(33), 33), (1e19, 64)] {
            assert_eq!(
                Unit::Bytes.ceiling(largest).to_bits(),
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
            let ceiling = Unit::BytesPerSecond.ceiling(largest);
            assert!((ceiling - end).abs() < 1e-6 * end, "{largest}: {ceiling}");
        }
    }
}
