//! The key that identifies a metrics page.

use schemars::JsonSchema;
use serde::Deserialize;

use super::text::Format;
use crate::view::View;

/// The naming scheme of the metrics.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Deserialize, JsonSchema)]
#[schemars(rename = "MetricNames")]
pub(crate) enum MetricNames {
    /// gpumon's own names, in base units.
    #[default]
    #[serde(rename = "gpumon")]
    Gpumon,
    /// dcgm-exporter's names up to version 4.8.
    #[serde(rename = "dcgm")]
    Dcgm,
    /// dcgm-exporter's names since version 4.9.
    #[serde(rename = "dcgm-4.9")]
    Dcgm49,
}

/// The groups of clients that a page is written for. No page is written for a single user.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub(crate) enum PageReader {
    /// The server's own user, and clients with the scope `metrics`.
    #[default]
    Trusted,
    /// All users of the machine. `commands` has the same meaning as in [`View::Names`].
    Anybody { commands: bool },
    /// A client that sees no users, jobs or pods.
    Nobody,
}

impl PageReader {
    /// Returns the group of clients that has this view.
    pub(super) fn from_view(view: &View) -> Self {
        match view {
            View::Whole => Self::Trusted,
            View::Names { commands, .. } => Self::Anybody {
                commands: *commands,
            },
            View::Own(_) => Self::Nobody,
        }
    }

    pub(super) fn to_view(self) -> View {
        match self {
            Self::Trusted => View::Whole,
            Self::Anybody { commands } => View::Names {
                user: None,
                commands,
            },
            Self::Nobody => View::Own(None),
        }
    }
}

/// The properties that distinguish the pages written from the same sample.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
// The booleans are independent options.
#[allow(clippy::struct_excessive_bools)]
pub(crate) struct PageKey {
    pub(super) names: MetricNames,
    pub(super) links: bool,
    /// Whether the page includes metrics of processes.
    pub(super) processes: bool,
    /// The clients that the page is written for.
    pub(super) reader: PageReader,
    pub(super) format: Format,
    pub(super) gzip: bool,
}
