//! The GPU vendors that gpumon supports.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use ts_rs::TS;

/// The vendor of a GPU.
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
    /// GPUs made by NVIDIA.
    #[default]
    Nvidia,
    /// GPUs made by AMD.
    Amd,
    /// GPUs made by Intel.
    Intel,
}

impl Vendor {
    pub const ALL: [Self; 3] = [Self::Nvidia, Self::Amd, Self::Intel];

    /// Returns the vendor's name in its official capitalization.
    pub fn name(self) -> &'static str {
        match self {
            Self::Nvidia => "NVIDIA",
            Self::Amd => "AMD",
            Self::Intel => "Intel",
        }
    }

    /// Returns the vendor's term for links between GPUs.
    pub fn link_name(self) -> &'static str {
        match self {
            Self::Nvidia => "NVLink",
            Self::Amd => "XGMI",
            Self::Intel => "Xe Link",
        }
    }

    /// Returns the vendor's term for a part of a GPU that programs see as a separate GPU.
    pub fn partition_name(self) -> &'static str {
        match self {
            Self::Nvidia => "MIG instance",
            Self::Amd | Self::Intel => "partition",
        }
    }

    /// Returns the name in lowercase, as used in `amd:0`.
    pub fn lower_name(self) -> String {
        self.name().to_ascii_lowercase()
    }

    /// Returns the vendor with this name, regardless of case.
    pub fn from_name(word: &str) -> Option<Self> {
        let mut vendors = Self::ALL.into_iter();
        vendors.find(|vendor| vendor.name().eq_ignore_ascii_case(word))
    }

    /// Returns a GPU's name without its vendor: `H200` for `NVIDIA H200`.
    pub fn strip_vendor(name: &str) -> &str {
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
    fn vendor_prefix_is_stripped_only_as_whole_word() {
        let names = ["NVIDIA H200", "H200", "NVIDIAH200", "AMD Radeon RX 580"];
        let stripped = names.map(Vendor::strip_vendor);
        assert_eq!(stripped, ["H200", "H200", "NVIDIAH200", "Radeon RX 580"]);
    }
}
