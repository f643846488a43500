//! The vendors of GPUs.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use ts_rs::TS;

/// A vendor of GPUs.
#[derive(
    Debug,
    Clone,
    Copy,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Serialize,
    Deserialize,
    TS,
    JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Vendor {
    /// NVIDIA.
    #[default]
    Nvidia,
}

impl Vendor {
    /// Every vendor.
    pub const ALL: [Self; 1] = [Self::Nvidia];

    /// The vendor's own spelling of its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Nvidia => "NVIDIA",
        }
    }
}
