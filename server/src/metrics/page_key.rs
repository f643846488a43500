//! The key by which metrics pages of one moment differ.

use schemars::JsonSchema;
use serde::Deserialize;

use super::text::Format;
use crate::view::View;

/// The naming scheme of the metrics.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Deserialize, JsonSchema)]
#[schemars(rename = "MetricNames")]
pub(crate) enum Names {
    /// The names of gpumon, in base units.
    #[default]
    #[serde(rename = "gpumon")]
    Gpumon,
    /// The names of dcgm-exporter until 4.8.
    #[serde(rename = "dcgm")]
    Dcgm,
    /// The names of dcgm-exporter since 4.9.
    #[serde(rename = "dcgm-4.9")]
    Dcgm49,
}

/// The readers of a page. No page is made for one user alone.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub(crate) enum Reader {
    /// The server's own user, and clients with the scope `metrics`.
    #[default]
    Trusted,
    /// All users of the machine. `commands` is the same as in [`View::Names`].
    Anybody { commands: bool },
    /// A client that sees no users, jobs or pods.
    Nobody,
}

impl Reader {
    /// Returns the reader who has this view.
    pub(super) fn of(view: &View) -> Self {
        match view {
            View::Whole => Self::Trusted,
            View::Names { commands, .. } => Self::Anybody {
                commands: *commands,
            },
            View::Own(_) => Self::Nobody,
        }
    }

    pub(super) fn view(self) -> View {
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

/// The properties by which pages of one moment differ.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
// The booleans are independent options.
#[allow(clippy::struct_excessive_bools)]
pub(crate) struct PageKey {
    pub(super) names: Names,
    pub(super) links: bool,
    /// Whether processes have series.
    pub(super) processes: bool,
    /// The reader for whom the page is written.
    pub(super) reader: Reader,
    pub(super) format: Format,
    pub(super) gzip: bool,
}
