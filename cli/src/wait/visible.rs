//! What `CUDA_VISIBLE_DEVICES` already allows, as a job's scheduler sets it: a waiter chooses among that.
//!
//! CUDA counts in an order of its own, the fastest first, unless `CUDA_DEVICE_ORDER` is `PCI_BUS_ID`, which is NVML's.
//! Among GPUs of one model the two are the same.

use std::{env, fmt};

use gpumon_probe::model::Gpu;

use crate::device_id::{DeviceId, by_uuid};

pub(super) const DEVICES: &str = "CUDA_VISIBLE_DEVICES";
pub(super) const ORDER: &str = "CUDA_DEVICE_ORDER";
pub(super) const PCI_ORDER: &str = "PCI_BUS_ID";

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Visible {
    text: String,
    /// Whether its numbers count as NVML's do.
    in_pci_order: bool,
}

impl Visible {
    /// `None` where nothing is restricted.
    pub(super) fn from_environment() -> Option<Self> {
        let text = env::var_os(DEVICES)?.to_string_lossy().into_owned();
        Some(Self {
            text,
            in_pci_order: env::var_os(ORDER).is_some_and(|order| order == PCI_ORDER),
        })
    }

    /// What it leaves. As in CUDA, the list ends at the first entry that means nothing.
    pub(super) fn ids(&self, gpus: &[Gpu]) -> Result<Vec<DeviceId>, String> {
        let mut ids = Vec::new();
        for entry in self.text.split(',').map(str::trim) {
            let id = match entry.parse() {
                Ok(number) => self.by_number(number, gpus)?,
                Err(_) => by_uuid(entry, gpus).or_else(|| by_instance(entry, gpus)),
            };
            match id {
                Some(id) => ids.push(id),
                None => break,
            }
        }
        Ok(ids)
    }

    fn by_number(&self, number: i64, gpus: &[Gpu]) -> Result<Option<DeviceId>, String> {
        let are_alike = gpus
            .windows(2)
            .all(|pair| pair[0].name.value() == pair[1].name.value());
        if !self.in_pci_order && !are_alike {
            return Err(format!(
                "{self} counts GPUs of different models in CUDA's own order: set {ORDER}={PCI_ORDER}, or give UUIDs"
            ));
        }
        let gpu = gpus.iter().find(|gpu| i64::from(gpu.index) == number);
        Ok(gpu.map(|gpu| DeviceId {
            gpu: gpu.index,
            mig: None,
        }))
    }
}

/// The older name of a MIG device: `MIG-GPU-UUID/GPU instance/compute instance`.
fn by_instance(entry: &str, gpus: &[Gpu]) -> Option<DeviceId> {
    let mut parts = entry.strip_prefix("MIG-")?.split('/');
    let gpu = by_uuid(parts.next()?, gpus)?.gpu;
    let (gpu_instance, compute_instance): (u32, u32) =
        (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
    let mut devices = gpus
        .iter()
        .find(|found| found.index == gpu)?
        .mig_devices
        .iter();
    let is_it = |instance: gpumon_probe::model::MigInstance| {
        (instance.gpu_instance, instance.compute_instance) == (gpu_instance, compute_instance)
    };
    devices
        .find(|device| is_it(device.instance))
        .map(|device| DeviceId {
            gpu,
            mig: Some(device.index),
        })
}

impl fmt::Display for Visible {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{DEVICES}={}", self.text.escape_debug())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device_id::tests::gpus;

    fn left(
        text: &str,
        in_pci_order: bool,
        names: &[&str],
    ) -> Result<Vec<(u32, Option<u32>)>, String> {
        let ids = Visible {
            text: text.to_owned(),
            in_pci_order,
        }
        .ids(&gpus(names))?;
        Ok(ids.into_iter().map(|id| (id.gpu, id.mig)).collect())
    }

    #[test]
    fn entries_count_up_to_the_first_that_means_nothing_as_in_cuda() {
        let alike = ["H200", "H200", "H200"];
        for (text, ids) in [
            ("", vec![]),
            ("-1", vec![]),
            ("NoDevFiles", vec![]),
            ("1", vec![(1, None)]),
            ("2, 0", vec![(2, None), (0, None)]),
            ("0,7,1", vec![(0, None)]),
            ("GPU-a1", vec![(1, None)]),
            ("MIG-1c", vec![(2, Some(1))]),
            ("MIG-GPU-a2b1c2d3/8/0", vec![(2, Some(1))]),
            ("MIG-GPU-a2b1c2d3/9/0", vec![]),
        ] {
            assert_eq!(left(text, false, &alike), Ok(ids), "{text}");
        }
    }

    #[test]
    fn numbers_among_different_models_need_an_order() {
        let mixed = ["H200", "L4"];
        assert_eq!(left("1", true, &mixed), Ok(vec![(1, None)]));
        assert_eq!(left("GPU-a1", false, &mixed), Ok(vec![(1, None)]));
        assert!(
            left("1", false, &mixed)
                .unwrap_err()
                .contains("CUDA_DEVICE_ORDER=PCI_BUS_ID")
        );
    }
}
