//! What a run of a workload has shown.

use std::{borrow::Cow, time::Duration};

use serde::{Deserialize, Serialize};

use crate::{
    check::Verification,
    cuda::Device,
    measure::Stopped,
    roofline::Roofline,
    statistics::Times,
    workload::{Backend, Cost, Dtype, Engine, Extent},
};

/// What a run has shown, as one JSON object.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// The workload.
    pub id: Cow<'static, str>,
    /// Of which the first of its random inputs is made, in hexadecimal digits; each further one has the next number. It is
    /// always the same, so that anybody can have the same inputs again.
    #[serde(default)]
    pub seed: Cow<'static, str>,
    /// Where it ran.
    pub backend: Backend,
    /// By what, on a GPU.
    #[serde(default)]
    pub engine: Engine,
    /// On what.
    pub device: DeviceName,
    /// The GPU beside that, where it takes two.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<DeviceName>,
    /// The type of its elements.
    pub dtype: Dtype,
    /// The elements of each of its arrays, or the rows of each of its matrices.
    pub n: u64,
    /// Which of them.
    pub extent: Extent,
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

impl From<&Device> for DeviceName {
    fn from(Device { index, name, uuid, .. }: &Device) -> Self {
        Self { index: Some(*index), name: name.clone(), uuid: Some(uuid.clone()) }
    }
}

impl Rate {
    /// Of so many operations in such a time, in which there was more than one run.
    pub(crate) fn of_work(operations: u64, elapsed: Duration) -> Self {
        let is_any = operations > 0 && !elapsed.is_zero();
        let operations_per_second = is_any.then(|| operations as f64 / elapsed.as_secs_f64());
        Self { bytes_per_second: None, operations_per_second }
    }

    /// Of so much in such a time.
    pub(crate) fn of(cost: Cost, median_us: Option<f64>) -> Self {
        let in_a_second = |count: u64| {
            let median_us = median_us.filter(|time| *time > 0.0 && count > 0)?;
            Some(count as f64 / median_us * 1e6)
        };
        Self { bytes_per_second: in_a_second(cost.moved_bytes), operations_per_second: in_a_second(cost.operations) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_of_what_there_is() {
        let cost = Cost { moved_bytes: 3000, ..Cost::default() };
        assert_eq!(Rate::of(cost, Some(1.5)), Rate { bytes_per_second: Some(2e9), operations_per_second: None });
        assert_eq!(Rate::of(cost, None), Rate::default());
        assert_eq!(Rate::of(cost, Some(0.0)), Rate::default());
    }
}
