//! What a variant of a tutorial benchmark has shown.

use std::borrow::Cow;

use gpumon_probe::{flat, tagged};
use serde::{Deserialize, Serialize};

use super::{framework_run::FrameworkRun, outcome::Outcome, vocabulary::Backend};

/// What a variant has shown.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TutorialReport {
    /// The case, as `c`.
    #[serde(rename = "row")]
    pub case: Cow<'static, str>,
    /// What that is about.
    pub title: Cow<'static, str>,
    /// What one learns from it.
    pub teaches: Cow<'static, str>,
    /// The variant.
    pub variant: Cow<'static, str>,
    /// Where it runs.
    pub backend: Backend,
    /// What came of it.
    #[serde(flatten)]
    pub found: Found,
    /// What a framework takes for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub framework: Option<FrameworkTime>,
    /// The time of this as a share of the framework's, both by the host's clock; none where there
    /// is nothing to compare.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub share_of_framework: Option<f64>,
    /// Frameworks that ran beside it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub beside: Vec<FrameworkRun>,
}

/// What a framework takes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FrameworkTime {
    /// As `CuPy`.
    pub name: Cow<'static, str>,
    /// How long, in us.
    pub us: f64,
    /// On what that was measured.
    pub on: Cow<'static, str>,
    /// The month of the measurement, as `2026-11`.
    #[serde(default)]
    pub measured: Cow<'static, str>,
    /// Whether this ran on such a device, too, so that the two can be compared.
    #[serde(default)]
    pub same_device: bool,
}

/// What came of a variant, told apart by `found`.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "found", rename_all = "snake_case")]
pub enum Found {
    /// It was measured and verified.
    Measured {
        /// What it has shown.
        outcome: Box<Outcome>,
    },
    /// It is told in words.
    Shown {
        /// Whether it is as it should be.
        ok: bool,
        /// What there is to say.
        text: String,
    },
    /// It does not run here.
    Skipped {
        /// Why.
        reason: String,
    },
    /// It did not come to its end.
    Failed {
        /// Why, and what to do.
        error: String,
        /// Whether it was refused since it would have taken too much.
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
    /// For want of a GPU.
    pub fn no_gpu() -> Self {
        Self::Skipped {
            reason: "there is no GPU".to_owned(),
        }
    }

    /// For want of a workload.
    pub fn missing(id: &str) -> Self {
        Self::Skipped {
            reason: format!("there is no workload '{id}'"),
        }
    }
}

impl TutorialReport {
    /// Whether something was checked and is not as it should be.
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
