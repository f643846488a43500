//! Outcomes of workloads and tutorial benchmarks, and results of other frameworks for comparison.

use std::{borrow::Cow, time::Duration};

use gpumon_probe::{benchmarks::Interval, flat, model::Reading, tagged};
use serde::{Deserialize, Serialize};

use super::vocabulary::{Backend, Cost, Dtype, Engine, Extent, LimitingResource, Shape};

/// The outcome of running a workload, serialized as one JSON object.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RunOutcome {
    /// The name of the workload.
    pub id: Cow<'static, str>,
    /// The seed of the first random input, in hexadecimal digits. Each further input uses the next
    /// number as its seed. The seed never changes, so that anybody can reproduce the inputs.
    pub seed: Cow<'static, str>,
    /// The backend that the workload ran on.
    pub backend: Backend,
    /// The software that executed the workload on a GPU.
    pub engine: Engine,
    /// The device that the workload ran on.
    pub device: DeviceName,
    /// The second GPU, if the workload needs two.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<DeviceName>,
    /// The kernel that computed the result, if the workload has several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kernel: Option<KernelUse>,
    /// The type of the workload's elements.
    pub dtype: Dtype,
    /// The size of the workload, such as the number of elements of each array or of rows of each
    /// matrix.
    pub n: u64,
    /// The quantity that `n` counts.
    pub extent: Extent,
    /// The dimensions of a matrix product that was requested by shape. `n` is then the number of
    /// rows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shape: Option<Shape>,
    /// The memory and the number of operations of one run.
    #[serde(flatten)]
    pub cost: Cost,
    /// Times measured by the device's clock; `null` on the CPU, or if nothing was timed.
    pub device_time: Option<Times>,
    /// Times measured by the host's clock, from the first call until all work was done; `null` if
    /// nothing was timed.
    pub host_time: Option<Times>,
    /// The reason why measuring stopped.
    pub stopped: MeasureEnd,
    /// Whether the workload was interrupted before it was complete.
    pub partial: bool,
    /// The rate of the median run, measured by the device's clock if available, and otherwise by
    /// the host's.
    pub rate: Throughput,
    /// The comparison of the achieved rate with the theoretical peak.
    pub roofline: Roofline,
    /// The verification of the result.
    pub verify: Verification,
    /// Circumstances that may affect the measurement.
    pub environment: Environment,
}

/// The device that a workload ran on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DeviceName {
    /// The CUDA index; `None` for the CPU.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub index: Option<u32>,
    /// The name of the GPU, such as `NVIDIA H200`, or of the CPU.
    pub name: String,
    /// The UUID, as reported by NVML; `None` for the CPU.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uuid: Option<String>,
}

/// A kernel and its use of a multiprocessor's resources, as reported by the driver
/// (`cuFuncGetAttribute`, `cuOccupancyMaxActiveBlocksPerMultiprocessor`).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct KernelUse {
    /// The name of the kernel in its source.
    pub name: Cow<'static, str>,
    /// The target of the machine code, such as `sm_90`, whether it was compiled in advance or by
    /// the driver.
    pub architecture: String,
    /// The number of 32-bit registers per thread.
    pub registers: u32,
    /// The local memory that a thread uses because its registers are not enough, in bytes.
    pub spilled_bytes: u32,
    /// The shared memory per block, in bytes.
    pub shared_bytes: u32,
    /// The number of threads per block.
    pub threads: u32,
    /// The number of blocks that a multiprocessor can execute simultaneously.
    pub blocks: u32,
    /// The number of threads in these blocks, in percent of the maximum number of threads that a
    /// multiprocessor can execute simultaneously.
    pub occupancy_percent: f64,
}

/// The throughput of a workload. Quantities that do not apply to the workload are omitted.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Throughput {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes_per_second: Option<f64>,
    /// The number of floating-point operations per second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operations_per_second: Option<f64>,
}

/// The circumstances that may affect a measurement.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Environment {
    /// The time at which timing started, in milliseconds since 1970.
    pub from_ms: u64,
    /// The time at which timing ended, in milliseconds since 1970.
    pub to_ms: u64,
    /// The version of gpumon.
    pub gpumon: Cow<'static, str>,
    /// The newest CUDA version that the driver supports; `None` if the workload ran on the CPU.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cuda: Option<String>,
    /// The name of the CPU.
    pub cpu: String,
    /// The number of CPU threads in use.
    pub threads: usize,
}

/// The reason why measuring stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MeasureEnd {
    /// The relative deviation of the times is half a percent or less.
    Steady,
    /// The time limit was reached.
    TimeLimit,
    /// The maximum number of runs was reached.
    Enough,
    /// The run was interrupted by the user.
    Interrupted,
}

/// A summary of measured times, in microseconds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Times {
    /// The median of the times.
    pub median_us: f64,
    /// The lower end of the 95 % confidence interval of the median.
    pub low_us: f64,
    /// The upper end of the 95 % confidence interval of the median.
    pub high_us: f64,
    /// The 5th percentile of the times.
    pub p5_us: f64,
    /// The 95th percentile of the times.
    pub p95_us: f64,
    /// The shortest time.
    pub min_us: f64,
    /// The number of measured times.
    pub n: usize,
}

/// The theoretical peak rate, and the share of the peak that was achieved.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Roofline {
    /// The resource that limits the workload.
    pub limit: LimitingResource,
    /// The peak rate of the limiting resource: operations per second if computation is the limit,
    /// otherwise bytes per second.
    pub rated_per_second: Reading<f64>,
    /// The clock for which the peak was calculated; omitted if the clock does not affect the peak.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rated_mhz: Option<f64>,
    /// The share of the peak that was reached.
    pub share: Reading<f64>,
}

/// The result of comparing a workload's output with the reference.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Verification {
    /// Whether at least one element was checked and none was wrong.
    pub ok: bool,
    /// The number of compared elements.
    pub checked: u64,
    /// The number of wrong elements.
    pub wrong: u64,
    /// The index of the first wrong element.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_wrong: Option<u64>,
    /// The largest error among the correct elements, divided by the precision of the type and by
    /// the size of the inputs. For matrices, it is divided by the error bound of the element
    /// instead.
    pub largest_error: f64,
    /// The largest error that an element may have to count as correct.
    pub tolerance: f64,
}

flat! { RunOutcome {
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
    /// Returns the achieved share of the peak at the clock `mhz`, which was read during the run.
    /// Returns `None` if the peak does not depend on the clock.
    pub fn peak_share_at_clock(&self, mhz: f64) -> Option<f64> {
        let (share, rated_mhz) = (self.share.value()?, self.rated_mhz?);
        (mhz > 0.0).then(|| share * rated_mhz / mhz)
    }
}

impl Verification {
    /// Returns the result that is used if nothing was checked. It does not count as a success.
    #[inline]
    pub fn empty() -> Self {
        Self::from_word_counts(0, 0)
    }

    /// Returns the result for elements that are only checked together, for example by a sum.
    pub fn from_joint_check(checked: u64, is_right: bool) -> Self {
        Self::from_word_counts(checked, if is_right { 0 } else { checked })
    }

    /// Returns the result of a comparison in which `checked` words were compared, and `wrong` of
    /// them were wrong.
    #[inline]
    pub fn from_word_counts(checked: u64, wrong: u64) -> Self {
        Self::from_counts(checked, wrong, None, 0.0, 0.0)
    }

    /// Combines the results of two parts of an output, or of two checks.
    #[must_use]
    #[inline]
    pub fn merge(self, other: Self) -> Self {
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

    /// Returns a result with these counts and errors. It is a success if at least one element was
    /// compared and none was wrong.
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

    /// Returns the result for one element, from the element's error and the largest error allowed.
    /// This function is called for millions of elements, so it must be inlined.
    #[inline]
    pub fn from_element_error(index: u64, error: f64, tolerance: f64) -> Self {
        // This comparison is also false for NaN, which is never correct.
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

/// Combines the results of all parts.
impl FromIterator<Self> for Verification {
    #[inline]
    fn from_iter<Parts: IntoIterator<Item = Self>>(parts: Parts) -> Self {
        parts.into_iter().fold(Self::empty(), Self::merge)
    }
}

impl Throughput {
    /// Returns the throughput for a number of operations that were executed within a time span. The
    /// time span may cover several runs.
    pub fn from_operations(operations: u64, elapsed: Duration) -> Self {
        let is_any = operations > 0 && !elapsed.is_zero();
        let operations_per_second = is_any.then(|| operations as f64 / elapsed.as_secs_f64());
        Self {
            bytes_per_second: None,
            operations_per_second,
        }
    }

    /// Returns the throughput of one run with this cost and median time.
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

/// A framework that ran the same operation on the same data.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct FrameworkRun {
    /// The framework's name, such as `CuPy`.
    pub name: Cow<'static, str>,
    /// The version that the framework reports.
    #[serde(default)]
    pub version: String,
    /// Times measured by the host's clock, from the call until the result was available.
    pub host_time: Option<Times>,
    /// The verification of the last result.
    pub verify: Option<Verification>,
    /// The framework's median time divided by gpumon's, both measured by the host's clock. A value
    /// above 1 means that gpumon is faster. Omitted if either result was not verified.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ratio: Option<f64>,
    /// The reason why the framework did not finish.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

impl FrameworkRun {
    /// Creates a framework run without results.
    pub fn new(name: String) -> Self {
        Self {
            name: name.into(),
            ..Self::default()
        }
    }
}

/// The result of one variant of a tutorial benchmark.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TutorialReport {
    /// The name of the case, such as `c`.
    #[serde(rename = "row")]
    pub case: Cow<'static, str>,
    /// The title of the case.
    pub title: Cow<'static, str>,
    /// The lesson of the case.
    pub teaches: Cow<'static, str>,
    /// The name of the variant.
    pub variant: Cow<'static, str>,
    pub backend: Backend,
    #[serde(flatten)]
    pub found: VariantOutcome,
    /// The time that another framework needs for the same task, measured in advance.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub framework: Option<FrameworkTime>,
    /// The time of the variant divided by the time of the framework, both measured by the host's
    /// clock. `None` if the times cannot be compared.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub share_of_framework: Option<f64>,
    /// The results of frameworks that ran the same operation.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub beside: Vec<FrameworkRun>,
}

/// The time of a framework, measured in advance.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FrameworkTime {
    /// The framework's name, such as `CuPy`.
    pub name: Cow<'static, str>,
    /// The framework's time in microseconds.
    pub us: f64,
    /// The device on which the time was measured.
    pub on: Cow<'static, str>,
    /// The month in which the time was measured, such as `2026-11`.
    #[serde(default)]
    pub measured: Cow<'static, str>,
    /// Whether the variant ran on the same kind of device as the framework, so that the times can
    /// be compared.
    #[serde(default)]
    pub same_device: bool,
}

/// The outcome of a variant. The JSON key `found` contains its kind.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "found", rename_all = "snake_case")]
pub enum VariantOutcome {
    /// The variant was measured and verified.
    Measured { outcome: Box<RunOutcome> },
    /// The variant ran, and its outcome is described in words.
    Shown {
        /// Whether the outcome is as expected.
        ok: bool,
        text: String,
    },
    /// The variant cannot run on this machine.
    Skipped { reason: String },
    /// The variant did not finish.
    Failed {
        /// The problem and its remedy.
        error: String,
        /// Whether the variant was refused because it needs too much memory.
        refused: bool,
    },
}

flat! { TutorialReport {
    case = "row", title, teaches, variant, backend, framework, share_of_framework, beside: default, found: rest
} }

tagged!(VariantOutcome by "found" {
    "measured" => Measured { outcome },
    "shown" => Shown { ok, text },
    "skipped" => Skipped { reason },
    "failed" => Failed { error, refused },
});

impl VariantOutcome {
    /// Returns the outcome of a variant that is skipped because there is no GPU.
    pub fn new_skipped_without_gpu() -> Self {
        Self::Skipped {
            reason: "there is no GPU".to_owned(),
        }
    }
}

impl TutorialReport {
    /// Returns `true` if a result was checked and found to be wrong.
    pub fn has_wrong_result(&self) -> bool {
        match &self.found {
            VariantOutcome::Measured { outcome } => {
                outcome.verify.wrong > 0 || !outcome.verify.ok && !outcome.partial
            }
            VariantOutcome::Shown { ok, .. } => !ok,
            VariantOutcome::Skipped { .. } | VariantOutcome::Failed { .. } => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn throughput_omits_rates_of_unknown_quantities() {
        let cost = Cost {
            moved_bytes: 3000,
            ..Cost::default()
        };
        assert_eq!(
            Throughput::from_cost(cost, Some(1.5)),
            Throughput {
                bytes_per_second: Some(2e9),
                operations_per_second: None
            }
        );
        assert_eq!(Throughput::from_cost(cost, None), Throughput::default());
        assert_eq!(
            Throughput::from_cost(cost, Some(0.0)),
            Throughput::default()
        );
    }
}
