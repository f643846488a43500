//! Results of frameworks that run the same operation as a workload.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use super::outcome::{Times, Verification};

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
    /// The framework's median time divided by gpumon's, both measured by the host's clock. Above 1,
    /// gpumon is faster. Omitted if either result was not verified.
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
