//! The `mig` key of a `[[gpu]]` table: how a GPU is divided.

use serde::Deserialize;

use super::given::Answers;
use crate::model::MigInstance;

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct MigSettings {
    pub(crate) profile: MigProfile,
    /// The number of its GPU instance, 0 to 14.
    pub(super) gpu_instance: u32,
    /// The number of its compute instance within that, 0 to 7.
    #[serde(default)]
    pub(super) compute_instance: u32,
    #[serde(default)]
    pub(super) answers: Answers,
}

impl MigSettings {
    /// The most devices of a GPU, and the slices that it can be cut into.
    pub(crate) const MOST: u32 = 7;

    pub(crate) fn instance(&self) -> MigInstance {
        MigInstance { gpu_instance: self.gpu_instance, compute_instance: self.compute_instance }
    }

    /// What is wrong with these as the devices of one GPU.
    pub(super) fn complaint(devices: &[Self]) -> Option<String> {
        let slices: u32 = devices.iter().map(|device| device.profile.slices).sum();
        if slices > Self::MOST {
            return Some(format!("these MIG devices have {slices} slices together; use {} at most", Self::MOST));
        }
        devices.iter().enumerate().find_map(|(at, device)| {
            let instance = device.instance();
            let (gpu, compute) = (instance.gpu_instance, instance.compute_instance);
            if gpu > 14 || compute > 7 {
                Some(format!("instance {gpu}/{compute} is beyond the last; use 0 to 14 for GPU and 0 to 7 for compute"))
            } else if devices[..at].iter().any(|other| other.instance() == instance) {
                Some(format!("instance {gpu}/{compute} is there twice; give each MIG device one of its own"))
            } else {
                None
            }
        })
    }
}

/// A profile as nvidia-smi writes it: `1g.18gb`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub(crate) struct MigProfile {
    pub(crate) text: String,
    /// Sevenths of the GPU.
    pub(crate) slices: u32,
    /// Memory in GB.
    pub(crate) gigabytes: u32,
}

impl TryFrom<String> for MigProfile {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let parts = text
            .split_once("g.")
            .and_then(|(slices, memory)| Some((slices.parse().ok()?, memory.strip_suffix("gb")?.parse().ok()?)));
        match parts {
            Some((slices @ (1 | 2 | 3 | 4 | 7), gigabytes @ 1..=1_000)) => Ok(Self { text, slices, gigabytes }),
            _ => {
                Err(format!("unknown MIG profile `{text}`; write it as 1g.18gb, 2g.35gb, 3g.71gb, 4g.71gb or 7g.141gb"))
            }
        }
    }
}
