//! The `mig` key of a `[[gpu]]` table, which divides the GPU into MIG devices.

use serde::Deserialize;

use super::given::GivenAnswers;
use crate::model::MigInstance;

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct MigSettings {
    pub(crate) profile: MigProfile,
    /// The number of the GPU instance, from 0 to 14.
    pub(super) gpu_instance: u32,
    /// The number of the compute instance within the GPU instance, from 0 to 7.
    #[serde(default)]
    pub(super) compute_instance: u32,
    #[serde(default)]
    pub(super) answers: GivenAnswers,
}

impl MigSettings {
    /// The number of slices in a GPU, and thus the maximum number of MIG devices.
    pub(crate) const MAX_SLICES: u32 = 7;

    pub(crate) fn instance(&self) -> MigInstance {
        MigInstance {
            gpu_instance: self.gpu_instance,
            compute_instance: self.compute_instance,
        }
    }

    /// Returns an error message if `devices` cannot exist together on one GPU.
    pub(super) fn find_error(devices: &[Self]) -> Option<String> {
        let placed = devices
            .iter()
            .enumerate()
            .find_map(|(at, device)| device.find_conflict(&devices[..at]));
        placed.or_else(|| {
            // Each GPU instance is counted once, through its first device.
            let first = |(at, own): &(usize, &Self)| {
                !devices[..*at]
                    .iter()
                    .any(|other| other.is_in_same_instance(own))
            };
            let slices: u32 = devices
                .iter()
                .enumerate()
                .filter(first)
                .map(|(_, own)| own.profile.slices)
                .sum();
            (slices > Self::MAX_SLICES).then(|| {
                format!(
                    "these MIG devices have {slices} slices together; use at most {}",
                    Self::MAX_SLICES
                )
            })
        })
    }

    fn is_in_same_instance(&self, other: &Self) -> bool {
        self.gpu_instance == other.gpu_instance
    }

    /// Returns an error message if the device conflicts with one of the devices in `before`.
    fn find_conflict(&self, before: &[Self]) -> Option<String> {
        let (gpu, compute) = (self.gpu_instance, self.compute_instance);
        if gpu > 14 || compute > 7 {
            return Some(format!(
                "instance {gpu}/{compute} is out of range; use 0 to 14 for the GPU instance and 0 \
                 to 7 for the compute instance"
            ));
        }
        let sharing = || {
            before
                .iter()
                .filter(|other| other.is_in_same_instance(self))
        };
        let MigProfile {
            gpu_instance,
            slices,
            ..
        } = &self.profile;
        if sharing().any(|other| other.compute_instance == compute) {
            return Some(format!(
                "instance {gpu}/{compute} is used twice; give each MIG device its own instance"
            ));
        }
        if let Some(other) = sharing().find(|other| other.profile.gpu_instance != *gpu_instance) {
            let known = &other.profile.gpu_instance;
            return Some(format!(
                "GPU instance {gpu} cannot be both {known} and {gpu_instance}; use the same \
                 profile for both"
            ));
        }
        let taken: u32 = sharing()
            .chain([self])
            .map(|device| device.profile.compute_slices)
            .sum();
        (taken > *slices).then(|| {
            format!(
                "the compute instances of GPU instance {gpu} have {taken} slices, but it has only \
                 {slices}; give compute instances that share it a profile such as 1c.{gpu_instance}"
            )
        })
    }
}

/// A MIG profile in nvidia-smi's format: `1g.18gb`, or `1c.3g.71gb` for a part of a GPU instance.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub(crate) struct MigProfile {
    pub(crate) text: String,
    /// The profile of the GPU instance, for example `3g.71gb`.
    gpu_instance: String,
    /// The number of slices in the GPU instance. A slice is a seventh of the GPU.
    pub(crate) slices: u32,
    /// The number of slices in the compute instance.
    pub(crate) compute_slices: u32,
    /// The memory of the GPU instance, in GB.
    pub(crate) gigabytes: u32,
}

impl TryFrom<String> for MigProfile {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let (compute, whole) = text
            .split_once("c.")
            .map_or((None, text.as_str()), |(compute, whole)| {
                (Some(compute), whole)
            });
        let parts = whole.split_once("g.").and_then(|(slices, memory)| {
            let slices = slices.parse().ok()?;
            let compute_slices = compute.map_or(Some(slices), |compute| compute.parse().ok())?;
            // If a compute instance has all slices of its GPU instance, its profile contains no
            // `c`.
            let is_part = compute.is_none() || compute_slices < slices;
            is_part.then_some((
                slices,
                compute_slices,
                memory.strip_suffix("gb")?.parse().ok()?,
            ))
        });
        match parts {
            Some((
                slices @ (1 | 2 | 3 | 4 | 7),
                compute_slices @ (1 | 2 | 3 | 4 | 7),
                gigabytes @ 1..=1_000,
            )) => Ok(Self {
                gpu_instance: whole.to_owned(),
                text,
                slices,
                compute_slices,
                gigabytes,
            }),
            _ => Err(format!(
                "unknown MIG profile `{text}`; use one such as 1g.18gb, 2g.35gb, 3g.71gb, 4g.71gb \
                 or 7g.141gb, or a part of one such as 1c.3g.71gb"
            )),
        }
    }
}
