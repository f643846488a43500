//! Benchmark results and their comparison.

use serde::{Deserialize, Serialize};

/// The maximum length of a name in bytes. Names are part of condition texts.
const MAX_NAME_BYTES: usize = 64;

/// The verified result of one benchmark.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Measurement {
    pub workload: String,
    /// The element type of the workload.
    pub dtype: String,
    /// The problem size, in a unit that depends on the workload.
    pub n: u64,
    /// The time of the measurement, in milliseconds since 1970.
    pub at_ms: u64,
    /// The measured duration of one run.
    pub time: Interval,
    /// The version of gpumon.
    pub gpumon: String,
    /// The newest CUDA version that the driver supported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cuda: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit_watts: Option<f64>,
    /// The mean clock of the multiprocessors, in MHz.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sm_mhz: Option<f64>,
}

/// A median in microseconds, with its 95 % confidence interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    pub median_us: f64,
    /// The start of the interval.
    pub low_us: f64,
    /// The end of the interval.
    pub high_us: f64,
}

impl Interval {
    /// Returns the speed relative to `old`: 1 is equally fast, and larger is faster. Returns `None`
    /// if the ratio is not finite.
    pub fn speed_ratio(&self, old: &Self) -> Option<f64> {
        Some(old.median_us / self.median_us).filter(|ratio| ratio.is_finite())
    }

    /// Returns `true` if this interval is slower than `old` and does not overlap `old`.
    pub fn is_slower(&self, old: &Self) -> bool {
        self.low_us > old.high_us
    }
}

impl Measurement {
    /// Returns `true` if both results are for the same workload, type and size.
    pub fn is_same_work(&self, other: &Self) -> bool {
        (&self.workload, &self.dtype, self.n) == (&other.workload, &other.dtype, other.n)
    }

    /// Returns `true` if the values are plausible.
    pub(super) fn is_plausible(&self) -> bool {
        let is_name = |name: &str| {
            name.len() <= MAX_NAME_BYTES && name.bytes().all(|byte| byte.is_ascii_graphic())
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
