//! What a run of a workload has shown.

use std::{borrow::Cow, time::Duration};

use gpumon_probe::{benchmarks::Interval, flat, model::Reading};
use serde::{Deserialize, Serialize};

use super::vocabulary::{Backend, Bound, Cost, Dtype, Engine, Extent, Shape};

/// What a run has shown, as one JSON object.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Outcome {
    /// The workload.
    pub id: Cow<'static, str>,
    /// Of which the first of its random inputs is made, in hexadecimal digits; each further one has
    /// the next number. It is always the same, so that anybody can have the same inputs again.
    pub seed: Cow<'static, str>,
    /// Where it ran.
    pub backend: Backend,
    /// By what, on a GPU.
    pub engine: Engine,
    /// On what.
    pub device: DeviceName,
    /// The GPU beside that, where it takes two.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<DeviceName>,
    /// The kernel that did it, where there are several to choose from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kernel: Option<KernelUse>,
    /// The type of its elements.
    pub dtype: Dtype,
    /// The elements of each of its arrays, or the rows of each of its matrices.
    pub n: u64,
    /// Which of them.
    pub extent: Extent,
    /// Rows, columns and depth of a product, where it was asked for by those; `n` is its rows then.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shape: Option<Shape>,
    /// What one run takes and does.
    #[serde(flatten)]
    pub cost: Cost,
    /// By the device's clock; `null` on the CPU and where nothing was timed.
    pub device_time: Option<Times>,
    /// By the host's clock, from the first call until all was done; `null` where nothing was timed.
    pub host_time: Option<Times>,
    /// Why measuring stopped.
    pub stopped: Stopped,
    /// Whether somebody stopped it before it had shown all.
    pub partial: bool,
    /// Of the median, by the device's clock where there is one.
    pub rate: Rate,
    /// How near that is to what is possible.
    pub roofline: Roofline,
    /// Whether the result is right.
    pub verify: Verification,
    /// What else may matter.
    pub environment: Environment,
}

/// What something ran on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DeviceName {
    /// As CUDA counts; none for the CPU.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub index: Option<u32>,
    /// As `NVIDIA H200`, or the CPU's.
    pub name: String,
    /// As NVML says it; none for the CPU.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uuid: Option<String>,
}

/// A kernel, and what it takes of a multiprocessor, as the driver tells it (`cuFuncGetAttribute`,
/// `cuOccupancyMaxActiveBlocksPerMultiprocessor`).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct KernelUse {
    /// As it is called in its source.
    pub name: Cow<'static, str>,
    /// What its machine code is for, as `sm_90`: made beforehand, or by the driver.
    pub architecture: String,
    /// Registers of 32 bits of a thread.
    pub registers: u32,
    /// Memory of a thread beside its registers.
    pub spilled_bytes: u32,
    /// Shared memory of a block.
    pub shared_bytes: u32,
    /// Threads of a block.
    pub threads: u32,
    /// Blocks that a multiprocessor has room for.
    pub blocks: u32,
    /// How many threads these have, of all that a multiprocessor has room for.
    pub occupancy_percent: f64,
}

/// What was done in a second. What it is not about is left out.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Rate {
    /// Bytes moved.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes_per_second: Option<f64>,
    /// Floating point operations.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operations_per_second: Option<f64>,
}

/// What else may matter for a measurement.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Environment {
    /// When timing began, in ms since 1970.
    pub from_ms: u64,
    /// When it ended.
    pub to_ms: u64,
    /// The program's version.
    pub gpumon: Cow<'static, str>,
    /// The newest CUDA that the driver knows; none where it ran on the CPU.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cuda: Option<String>,
    /// The CPU.
    pub cpu: String,
    /// Threads that work on it.
    pub threads: usize,
}

/// Why measuring stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stopped {
    /// The times deviate by half a percent at most.
    Steady,
    /// The time was over.
    TimeLimit,
    /// There were as many runs as are kept.
    Enough,
    /// Somebody wants to stop.
    Interrupted,
}

/// Times of one thing, in us.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Times {
    /// Half took less.
    pub median_us: f64,
    /// The median of any number of runs lies from here on, with 95 % probability.
    pub low_us: f64,
    /// And up to here.
    pub high_us: f64,
    /// One of twenty took less.
    pub p5_us: f64,
    /// One of twenty took more.
    pub p95_us: f64,
    /// The fastest.
    pub min_us: f64,
    /// How many there are.
    pub n: usize,
}

/// What is possible in a second, and how much of that was reached.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Roofline {
    /// What it is as fast as.
    pub limit: Bound,
    /// What that does in a second at best: operations where the limit is computing, and bytes
    /// elsewhere.
    pub rated_per_second: Reading<f64>,
    /// The clock of which that is; left out where no clock changes it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rated_mhz: Option<f64>,
    /// The share of that which was reached.
    pub share: Reading<f64>,
}

/// What a check found.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Verification {
    /// Whether something was checked and all of it is right.
    pub ok: bool,
    /// Elements that were compared.
    pub checked: u64,
    /// Of those, how many are wrong.
    pub wrong: u64,
    /// The index of the first that is wrong.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_wrong: Option<u64>,
    /// The largest error of those that are right: in units of the type's precision at the size of
    /// what was computed with, or for matrices as a share of the bound of each element.
    pub largest_error: f64,
    /// How large it may be.
    pub tolerance: f64,
}

flat! { Outcome {
    id, seed: default, backend, engine: default, device, to, kernel, dtype, n, extent, shape, device_time, host_time, stopped,
    partial, rate, roofline, verify, environment, cost: rest
} }

impl From<&Times> for Interval {
    fn from(times: &Times) -> Self {
        Self {
            median_us: times.median_us,
            low_us: times.low_us,
            high_us: times.high_us,
        }
    }
}

impl Roofline {
    /// The share of what is possible at a clock that was read while it ran; `None` where the clock
    /// changes nothing.
    pub fn share_at(&self, mhz: f64) -> Option<f64> {
        let (share, rated_mhz) = (self.share.value()?, self.rated_mhz?);
        (mhz > 0.0).then(|| share * rated_mhz / mhz)
    }
}

impl Verification {
    /// Nothing was checked, which is no success.
    #[inline]
    pub fn nothing() -> Self {
        Self::for_words(0, 0)
    }

    /// So many elements, checked by what was made of all of them.
    pub fn for_all(checked: u64, is_right: bool) -> Self {
        Self::for_words(checked, if is_right { 0 } else { checked })
    }

    /// Words that were compared with others that are right.
    #[inline]
    pub fn for_words(checked: u64, wrong: u64) -> Self {
        Self::from_counts(checked, wrong, None, 0.0, 0.0)
    }

    /// Both of two parts of a result, or of two looks at one.
    #[must_use]
    #[inline]
    pub fn and(self, other: Self) -> Self {
        Self::from_counts(
            self.checked + other.checked,
            self.wrong + other.wrong,
            [self.first_wrong, other.first_wrong]
                .into_iter()
                .flatten()
                .min(),
            self.largest_error.max(other.largest_error),
            self.tolerance.max(other.tolerance),
        )
    }

    /// Right where something was compared and none of it is wrong.
    #[inline]
    pub fn from_counts(
        checked: u64,
        wrong: u64,
        first_wrong: Option<u64>,
        largest_error: f64,
        tolerance: f64,
    ) -> Self {
        Self {
            ok: checked > 0 && wrong == 0,
            checked,
            wrong,
            first_wrong,
            largest_error,
            tolerance,
        }
    }

    /// One element, with its error and how large that may be. It is called for each of millions:
    /// whoever calls it has it inlined.
    #[inline]
    pub fn for_element(index: u64, error: f64, tolerance: f64) -> Self {
        // No number is not within any tolerance.
        let is_right = error <= tolerance;
        let largest_error = if is_right { error } else { 0.0 };
        Self::from_counts(
            1,
            u64::from(!is_right),
            (!is_right).then_some(index),
            largest_error,
            tolerance,
        )
    }
}

/// All parts of a result.
impl FromIterator<Self> for Verification {
    #[inline]
    fn from_iter<Parts: IntoIterator<Item = Self>>(parts: Parts) -> Self {
        parts.into_iter().fold(Self::nothing(), Self::and)
    }
}

impl Rate {
    /// Of so many operations in such a time, in which there was more than one run.
    pub fn from_operations(operations: u64, elapsed: Duration) -> Self {
        let is_any = operations > 0 && !elapsed.is_zero();
        let operations_per_second = is_any.then(|| operations as f64 / elapsed.as_secs_f64());
        Self {
            bytes_per_second: None,
            operations_per_second,
        }
    }

    /// Of so much in such a time.
    pub fn from_cost(cost: Cost, median_us: Option<f64>) -> Self {
        let in_a_second = |count: u64| {
            let median_us = median_us.filter(|time| *time > 0.0 && count > 0)?;
            Some(count as f64 / median_us * 1e6)
        };
        Self {
            bytes_per_second: in_a_second(cost.moved_bytes),
            operations_per_second: in_a_second(cost.operations),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_of_what_there_is() {
        let cost = Cost {
            moved_bytes: 3000,
            ..Cost::default()
        };
        assert_eq!(
            Rate::from_cost(cost, Some(1.5)),
            Rate {
                bytes_per_second: Some(2e9),
                operations_per_second: None
            }
        );
        assert_eq!(Rate::from_cost(cost, None), Rate::default());
        assert_eq!(Rate::from_cost(cost, Some(0.0)), Rate::default());
    }
}
