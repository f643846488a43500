//! Results of tutorial benchmarks.

use std::borrow::Cow;

use gpumon_probe::{flat, tagged};
use serde::{Deserialize, Serialize};

use super::{framework_run::FrameworkRun, outcome::Outcome, vocabulary::Backend};

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
    pub found: Found,
    /// The time that a framework needs for the same task.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub framework: Option<FrameworkTime>,
    /// The time of the variant as a share of the framework's, both by the host's clock; `None` if
    /// there is nothing to compare.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub share_of_framework: Option<f64>,
    /// The results of frameworks that ran the same operation.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub beside: Vec<FrameworkRun>,
}

/// The time of a framework, measured in advance.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FrameworkTime {
    /// The name, such as `CuPy`.
    pub name: Cow<'static, str>,
    /// The time in microseconds.
    pub us: f64,
    /// The device of the measurement.
    pub on: Cow<'static, str>,
    /// The month of the measurement, such as `2026-11`.
    #[serde(default)]
    pub measured: Cow<'static, str>,
    /// Whether the variant ran on the same kind of device, so that the times can be compared.
    #[serde(default)]
    pub same_device: bool,
}

/// The outcome of a variant, identified by the JSON key `found`.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "found", rename_all = "snake_case")]
pub enum Found {
    /// The variant was measured and verified.
    Measured { outcome: Box<Outcome> },
    /// The outcome is described in words.
    Shown {
        /// Whether the outcome is as expected.
        ok: bool,
        text: String,
    },
    /// The variant does not run on this machine.
    Skipped { reason: String },
    /// The variant did not finish.
    Failed {
        /// The problem and its remedy.
        error: String,
        /// Whether it was refused because it needs too much memory.
        refused: bool,
    },
}

flat! { TutorialReport {
    case = "row", title, teaches, variant, backend, framework, share_of_framework, beside: default, found: rest
} }

tagged!(Found by "found" {
    "measured" => Measured { outcome },
    "shown" => Shown { ok, text },
    "skipped" => Skipped { reason },
    "failed" => Failed { error, refused },
});

impl Found {
    /// Returns the outcome of a variant that is skipped because there is no GPU.
    pub fn no_gpu() -> Self {
        Self::Skipped {
            reason: "there is no GPU".to_owned(),
        }
    }

    /// Returns the outcome of a variant that is skipped because its workload does not exist.
    pub fn missing(id: &str) -> Self {
        Self::Skipped {
            reason: format!("there is no workload '{id}'"),
        }
    }
}

impl TutorialReport {
    /// Returns `true` if something was checked and found wrong.
    pub fn is_wrong(&self) -> bool {
        match &self.found {
            Found::Measured { outcome } => {
                outcome.verify.wrong > 0 || !outcome.verify.ok && !outcome.partial
            }
            Found::Shown { ok, .. } => !ok,
            Found::Skipped { .. } | Found::Failed { .. } => false,
        }
    }
}
