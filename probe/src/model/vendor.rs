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

    /// Returns the name of a GPU without its vendor: `H200` for `NVIDIA H200`.
    pub fn strip_from(name: &str) -> &str {
        let mut vendors = Self::ALL.iter();
        let stripped = vendors.find_map(|vendor| name.strip_prefix(vendor.name()));
        stripped
            .and_then(|rest| rest.strip_prefix(' '))
            .unwrap_or(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_vendor_is_stripped_from_names() {
        let names = ["NVIDIA H200", "H200", "NVIDIAH200"].map(Vendor::strip_from);
        assert_eq!(names, ["H200", "H200", "NVIDIAH200"]);
    }
}
