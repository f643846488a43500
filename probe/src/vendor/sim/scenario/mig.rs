//! The `mig` key of a `[[gpu]]` table, which divides a GPU.

use serde::Deserialize;

use super::given::Answers;
use crate::model::MigInstance;

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct MigSettings {
    pub(crate) profile: MigProfile,
    /// The number of the GPU instance, 0 to 14.
    pub(super) gpu_instance: u32,
    /// The number of the compute instance within the GPU instance, 0 to 7.
    #[serde(default)]
    pub(super) compute_instance: u32,
    #[serde(default)]
    pub(super) answers: Answers,
}

impl MigSettings {
    /// The number of slices in a GPU, which is also the maximum number of MIG devices.
    pub(crate) const MOST: u32 = 7;

    pub(crate) fn instance(&self) -> MigInstance {
        MigInstance {
            gpu_instance: self.gpu_instance,
            compute_instance: self.compute_instance,
        }
    }

    /// Returns an error message if these cannot be the devices of one GPU.
    pub(super) fn complaint(devices: &[Self]) -> Option<String> {
        let placed = devices
            .iter()
            .enumerate()
            .find_map(|(at, device)| device.misplaced(&devices[..at]));
        placed.or_else(|| {
            // This finds the first device of each GPU instance.
            let first =
                |(at, own): &(usize, &Self)| !devices[..*at].iter().any(|other| other.shares(own));
            let slices: u32 = devices
                .iter()
                .enumerate()
                .filter(first)
                .map(|(_, own)| own.profile.slices)
                .sum();
            (slices > Self::MOST).then(|| {
                format!(
                    "these MIG devices have {slices} slices together; use {} at most",
                    Self::MOST
                )
            })
        })
    }

    fn shares(&self, other: &Self) -> bool {
        self.gpu_instance == other.gpu_instance
    }

    /// Returns an error message if this device conflicts with those before it.
    fn misplaced(&self, before: &[Self]) -> Option<String> {
        let (gpu, compute) = (self.gpu_instance, self.compute_instance);
        if gpu > 14 || compute > 7 {
            return Some(format!(
                "instance {gpu}/{compute} is beyond the last; use 0 to 14 for GPU and 0 to 7 for compute"
            ));
        }
        let sharing = || before.iter().filter(|other| other.shares(self));
        let MigProfile {
            gpu_instance,
            slices,
            ..
        } = &self.profile;
        if sharing().any(|other| other.compute_instance == compute) {
            return Some(format!(
                "instance {gpu}/{compute} is there twice; give each MIG device one of its own"
            ));
        }
        if let Some(other) = sharing().find(|other| other.profile.gpu_instance != *gpu_instance) {
            let known = &other.profile.gpu_instance;
            return Some(format!(
                "GPU instance {gpu} cannot be {known} and {gpu_instance}; use the same for both"
            ));
        }
        let taken: u32 = sharing()
            .chain([self])
            .map(|device| device.profile.compute_slices)
            .sum();
        (taken > *slices).then(|| {
            format!(
                "the compute instances of GPU instance {gpu} have {taken} of its {slices} slices; write those that \
                 share it as 1c.{gpu_instance}"
            )
        })
    }
}

/// A profile in nvidia-smi's format: `1g.18gb`, or `1c.3g.71gb` for a part of a GPU instance.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub(crate) struct MigProfile {
    pub(crate) text: String,
    /// The profile of the GPU instance, for example `3g.71gb`.
    gpu_instance: String,
    /// The number of slices in the GPU instance, each a seventh of the GPU.
    pub(crate) slices: u32,
    /// The number of slices in the compute instance.
    pub(crate) compute_slices: u32,
    /// The memory in GB.
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
            // A compute instance with all slices has no `c` in its profile.
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
                "unknown MIG profile `{text}`; write it as 1g.18gb, 2g.35gb, 3g.71gb, 4g.71gb or 7g.141gb, and a part \
                 of one as 1c.3g.71gb"
            )),
        }
    }
}
