//! One result, and how fast it is beside another.

use serde::{Deserialize, Serialize};

/// Conditions tell names, which stand in a line.
const LONGEST_NAME: usize = 64;

/// The verified result of a workload.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Measurement {
    /// The workload.
    pub workload: String,
    /// The type of its elements.
    pub dtype: String,
    /// Its size, as the workload counts it.
    pub n: u64,
    /// When it was measured, in ms since 1970.
    pub at_ms: u64,
    /// How long it took.
    pub time: Interval,
    /// The version of gpumon that measured it.
    pub gpumon: String,
    /// The newest CUDA that the driver knew.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cuda: Option<String>,
    /// The power limit, in watts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit_watts: Option<f64>,
    /// Mean clock of the multiprocessors, in MHz.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sm_mhz: Option<f64>,
}

/// A median in us, and the interval in which it lies with 95 % probability.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// The median.
    pub median_us: f64,
    /// Where the interval begins.
    pub low_us: f64,
    /// Where it ends.
    pub high_us: f64,
}

impl Interval {
    /// How fast this is beside `old`: 1 is as fast, and more is faster. `None` where that is no
    /// number.
    pub fn ratio(&self, old: &Self) -> Option<f64> {
        Some(old.median_us / self.median_us).filter(|ratio| ratio.is_finite())
    }

    /// Whether this is slower than `old` by more than both medians are uncertain.
    pub fn is_slower(&self, old: &Self) -> bool {
        self.low_us > old.high_us
    }
}

impl Measurement {
    /// Whether both did the same.
    pub fn is_same_work(&self, other: &Self) -> bool {
        (&self.workload, &self.dtype, self.n) == (&other.workload, &other.dtype, other.n)
    }

    /// Whether it can have been measured, by a workload with a name.
    pub(super) fn is_possible(&self) -> bool {
        let is_name = |name: &str| {
            name.len() <= LONGEST_NAME && name.bytes().all(|byte| byte.is_ascii_graphic())
        };
        let Interval {
            median_us,
            low_us,
            high_us,
        } = self.time;
        is_name(&self.workload)
            && is_name(&self.dtype)
            && 0.0 < low_us
            && low_us <= median_us
            && median_us <= high_us
            && high_us.is_finite()
    }
}
