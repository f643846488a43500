//! What tells pages of metrics of the same moment apart.

use schemars::JsonSchema;
use serde::Deserialize;

use super::text::Format;

/// Whose names.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Deserialize, JsonSchema)]
#[schemars(rename = "MetricNames")]
pub(crate) enum Names {
    /// gpumon's own.
    #[default]
    #[serde(rename = "gpumon")]
    Gpumon,
    /// Those of dcgm-exporter until 4.8.
    #[serde(rename = "dcgm")]
    Dcgm,
    /// Those of dcgm-exporter since 4.9.
    #[serde(rename = "dcgm-4.9")]
    Dcgm49,
}

/// What tells pages of the same moment apart.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
// Each is a choice of its own.
#[allow(clippy::struct_excessive_bools)]
pub(crate) struct PageKey {
    pub(super) names: Names,
    pub(super) links: bool,
    /// Whether processes have series, too.
    pub(super) processes: bool,
    /// Whether nothing of users, their jobs and pods is in it.
    pub(super) hides_users: bool,
    pub(super) format: Format,
    pub(super) gzip: bool,
}
