//! Results of tutorial benchmarks.

use std::borrow::Cow;

use gpumon_probe::{flat, tagged};
use serde::{Deserialize, Serialize};

use super::{framework_run::FrameworkRun, outcome::RunOutcome, vocabulary::Backend};

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
    /// The variant's time as a share of the framework's time, both measured by the host's clock;
    /// `None` if the times cannot be compared.
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
    pub fn new_without_gpu() -> Self {
        Self::Skipped {
            reason: "there is no GPU".to_owned(),
        }
    }

    /// Returns the outcome of a variant that is skipped because its workload does not exist.
    pub fn new_without_workload(id: &str) -> Self {
        Self::Skipped {
            reason: format!("there is no workload '{id}'"),
        }
    }
}

impl TutorialReport {
    /// Returns `true` if a result was checked and found to be wrong.
    pub fn is_wrong(&self) -> bool {
        match &self.found {
            VariantOutcome::Measured { outcome } => {
                outcome.verify.wrong > 0 || !outcome.verify.ok && !outcome.partial
            }
            VariantOutcome::Shown { ok, .. } => !ok,
            VariantOutcome::Skipped { .. } | VariantOutcome::Failed { .. } => false,
        }
    }
}
