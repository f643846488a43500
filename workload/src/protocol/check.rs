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
    pub made: Reading<f64>,
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
    Agrees,
    /// It is not.
    Differs,
    /// The driver does not give it on this GPU, or it is not known what was made.
    NotReported,
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
    /// What figures of a column are in, and how much of them that is.
    pub fn in_column(self) -> (&'static str, f64) {
        match self {
            Self::Percent => ("%", 1.0),
            Self::Bytes => ("GiB", (1_u64 << 30) as f64),
            Self::BytesPerSecond => ("GB/s", 1e9),
            Self::Megahertz => ("MHz", 1.0),
            Self::Joules => ("J", 1.0),
        }
    }

    /// A figure with its unit, as `50.0 %` or `55.4 GB/s`.
    pub fn words(self, reading: &Reading<f64>) -> String {
        let Some(value) = reading.value() else { return "-".to_owned() };
        match self {
            Self::Percent => format!("{value:.1} %"),
            Self::Bytes => format!("{:.2} GiB", value / (1_u64 << 30) as f64),
            Self::BytesPerSecond => format!("{:.2} GB/s", value / 1e9),
            Self::Megahertz => format!("{value:.0} MHz"),
            Self::Joules => format!("{value:.0} J"),
        }
    }
}
