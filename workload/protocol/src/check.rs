//! Comparisons of the probe's readings with known loads.

use std::borrow::Cow;

use gpumon_probe::model::Reading;
use serde::{Deserialize, Serialize};

/// The comparison of a reading with a known load.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Check {
    /// The name of the load.
    pub load: Cow<'static, str>,
    /// A description of the load.
    pub does: Cow<'static, str>,
    /// The CUDA index of the GPU.
    pub gpu: u32,
    /// The path of the reading in a sample, such as `utilization.gpu_percent`.
    pub reading: Cow<'static, str>,
    /// The unit of all numbers in this comparison.
    pub unit: Unit,
    /// The value that the load should produce.
    pub expected: Reading<f64>,
    /// The smallest correct reading; absent if the expected value is absent.
    pub least: Reading<f64>,
    /// The largest correct reading; absent if the expected value is absent.
    pub most: Reading<f64>,
    /// The value that the probe reported.
    pub reported: Reading<f64>,
    /// The result of the comparison.
    pub verdict: Verdict,
    /// The source of the expected value.
    pub how: String,
    /// A sentence that summarizes the comparison.
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
    /// The driver does not report the reading on this GPU, or the expected value is unknown.
    NotReported,
}

impl Verdict {
    /// Returns the verdict in words for display.
    pub fn words(self) -> &'static str {
        match self {
            Self::Verified => "verified",
            Self::Mismatch => "mismatch",
            Self::NotReported => "not reported",
        }
    }
}

/// The unit of a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// Percent of a total or of a maximum.
    Percent,
    Bytes,
    BytesPerSecond,
    Megahertz,
    Joules,
}

impl Unit {
    /// Returns the unit for display, its size, and the number of decimal places, which is that of
    /// the tolerances.
    fn shown(self) -> (&'static str, f64, usize) {
        match self {
            Self::Percent => ("%", 1.0, 1),
            Self::Bytes => ("GiB", (1_u64 << 30) as f64, 3),
            Self::BytesPerSecond => ("GB/s", 1e9, 2),
            Self::Megahertz => ("MHz", 1.0, 0),
            Self::Joules => ("J", 1.0, 0),
        }
    }

    /// Returns the name of the unit for display, such as `GiB`.
    pub fn name(self) -> &'static str {
        self.shown().0
    }

    /// Formats a reading without its unit; returns `None` if it is absent.
    pub fn figure(self, reading: &Reading<f64>) -> Option<String> {
        let (_, size, decimals) = self.shown();
        reading
            .value()
            .map(|value| format!("{:.decimals$}", value / size))
    }

    /// Formats a reading with its unit, such as `50.0 %` or `55.40 GB/s`.
    pub fn words(self, reading: &Reading<f64>) -> String {
        self.figure(reading).map_or_else(
            || "-".to_owned(),
            |figure| format!("{figure} {}", self.name()),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_keep_the_digits_by_which_verdicts_differ() {
        let words = |unit: Unit, value| unit.words(&Reading::Now(value));
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
