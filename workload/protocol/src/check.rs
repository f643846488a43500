//! A reading of the probe beside what a known load made.

use std::borrow::Cow;

use gpumon_probe::model::Reading;
use serde::{Deserialize, Serialize};

/// A reading beside what was made.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Check {
    /// The load.
    pub load: Cow<'static, str>,
    /// What that does.
    pub does: Cow<'static, str>,
    /// The GPU of which the reading is, as CUDA counts.
    pub gpu: u32,
    /// The reading, by its place in a sample, as `utilization.gpu_percent`.
    pub reading: Cow<'static, str>,
    /// Of all figures here.
    pub unit: Unit,
    /// What was made.
    pub expected: Reading<f64>,
    /// The least that the reading may be; absent where what was made is.
    pub least: Reading<f64>,
    /// The most.
    pub most: Reading<f64>,
    /// What the probe reported.
    pub reported: Reading<f64>,
    /// Whether that is the same.
    pub verdict: Verdict,
    /// How it is known what was made.
    pub how: String,
    /// All of it in a sentence.
    pub text: String,
}

/// Whether a reading is what was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// It is.
    Verified,
    /// It is not.
    Mismatch,
    /// The driver does not give it on this GPU, or it is not known what was made.
    NotReported,
}

impl Verdict {
    /// As screens have it.
    pub fn words(self) -> &'static str {
        match self {
            Self::Verified => "verified",
            Self::Mismatch => "mismatch",
            Self::NotReported => "not reported",
        }
    }
}

/// Of a figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// Of all that there is or could be.
    Percent,
    /// Of memory.
    Bytes,
    /// On a link.
    BytesPerSecond,
    /// Of a clock.
    Megahertz,
    /// Of energy.
    Joules,
}

impl Unit {
    /// What figures are shown in, how much of them that is, and with how many decimals: as many as
    /// tolerances have.
    fn shown(self) -> (&'static str, f64, usize) {
        match self {
            Self::Percent => ("%", 1.0, 1),
            Self::Bytes => ("GiB", (1_u64 << 30) as f64, 3),
            Self::BytesPerSecond => ("GB/s", 1e9, 2),
            Self::Megahertz => ("MHz", 1.0, 0),
            Self::Joules => ("J", 1.0, 0),
        }
    }

    /// As `GiB`.
    pub fn name(self) -> &'static str {
        self.shown().0
    }

    /// A figure without its unit; `None` where there is none.
    pub fn figure(self, reading: &Reading<f64>) -> Option<String> {
        let (_, size, decimals) = self.shown();
        reading
            .value()
            .map(|value| format!("{:.decimals$}", value / size))
    }

    /// A figure with its unit, as `50.0 %` or `55.40 GB/s`.
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
