//! Comparisons of gpumon's readings with known loads.

use std::borrow::Cow;

use gpumon_probe::model::Reading;
use serde::{Deserialize, Serialize};

/// The comparison of a reading with a known load.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ReadingCheck {
    /// The name of the load.
    pub load: Cow<'static, str>,
    /// A description of what the load does.
    pub does: Cow<'static, str>,
    /// The CUDA index of the GPU.
    pub gpu: u32,
    /// The path of the reading in a sample, such as `utilization.gpu_percent`.
    pub reading: Cow<'static, str>,
    /// The unit of all numbers in this comparison.
    pub unit: Unit,
    /// The value that the load should produce.
    pub expected: Reading<f64>,
    /// The smallest reading that counts as correct; absent if the expected value is absent.
    pub least: Reading<f64>,
    /// The largest reading that counts as correct; absent if the expected value is absent.
    pub most: Reading<f64>,
    /// The value that gpumon reported.
    pub reported: Reading<f64>,
    /// The result of the comparison.
    pub verdict: Verdict,
    /// The way in which the expected value was determined.
    pub how: String,
    /// A sentence that summarizes the result of the comparison.
    pub text: String,
}

/// The result of comparing a reading with a known load.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The reading is correct.
    Verified,
    /// The reading is wrong.
    Mismatch,
    /// The driver does not report this reading on this GPU, or the expected value is unknown.
    NotReported,
}

impl Verdict {
    /// Returns the verdict as text for display.
    pub fn describe(self) -> &'static str {
        match self {
            Self::Verified => "verified",
            Self::Mismatch => "mismatch",
            Self::NotReported => "not reported",
        }
    }
}

/// The unit of a reading's values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// A percentage of a total or of a maximum.
    Percent,
    Bytes,
    BytesPerSecond,
    Megahertz,
    Joules,
}

impl Unit {
    /// Returns the unit's name for display, its size, and the number of decimal places. The number
    /// is chosen to show the tolerances.
    fn display_format(self) -> (&'static str, f64, usize) {
        match self {
            Self::Percent => ("%", 1.0, 1),
            Self::Bytes => ("GiB", (1_u64 << 30) as f64, 3),
            Self::BytesPerSecond => ("GB/s", 1e9, 2),
            Self::Megahertz => ("MHz", 1.0, 0),
            Self::Joules => ("J", 1.0, 0),
        }
    }

    /// Returns the unit's name for display, such as `GiB`.
    pub fn name(self) -> &'static str {
        self.display_format().0
    }

    /// Formats a reading without its unit. Returns `None` if the reading is absent.
    pub fn format_without_unit(self, reading: &Reading<f64>) -> Option<String> {
        let (_, size, decimals) = self.display_format();
        reading
            .value()
            .map(|value| format!("{:.decimals$}", value / size))
    }

    /// Formats a reading with its unit, such as `50.0 %` or `55.40 GB/s`.
    pub fn format_with_unit(self, reading: &Reading<f64>) -> String {
        self.format_without_unit(reading).map_or_else(
            || "-".to_owned(),
            |figure| format!("{figure} {}", self.name()),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn displayed_digits_show_why_verdicts_differ() {
        let words = |unit: Unit, value| unit.format_with_unit(&Reading::Now(value));
        assert_eq!(words(Unit::Megahertz, 1755.2), "1755 MHz");
        assert_eq!(words(Unit::Joules, 3421.6), "3422 J");
        assert_eq!(words(Unit::Percent, 71.46), "71.5 %");
        assert_eq!(words(Unit::BytesPerSecond, 63.047e9), "63.05 GB/s");
        assert_eq!(
            words(Unit::Bytes, 8.009 * (1_u64 << 30) as f64),
            "8.009 GiB"
        );
    }
}
