//! What a framework takes that ran beside a workload.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use super::outcome::{Times, Verification};

/// A framework that ran the same operation on the same data.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct FrameworkRun {
    /// As `CuPy`.
    pub name: Cow<'static, str>,
    /// As it calls it.
    #[serde(default)]
    pub version: String,
    /// By the host's clock, from the call until the result was there.
    pub host_time: Option<Times>,
    /// Whether its last result is right.
    pub verify: Option<Verification>,
    /// Its median over the runner's own host time: above 1, the runner is faster. Left out where a
    /// result was not verified.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ratio: Option<f64>,
    /// Why it did not come to its end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

impl FrameworkRun {
    /// Of this framework, nothing known yet.
    pub fn new(name: String) -> Self {
        Self {
            name: name.into(),
            ..Self::default()
        }
    }
}
