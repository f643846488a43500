//! A GPU or MIG device as people name it: by index, UUID or PCI bus id.

use std::fmt;

use gpumon_probe::model::{Gpu, is_same_bus_id};

use crate::{exit::Failure, suggest::nearest};

/// A GPU with all its MIG devices, or one of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DeviceId {
    pub(crate) gpu: u32,
    pub(crate) mig: Option<u32>,
}

/// That no GPU has this name, with those that there are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NoSuchGpu(String);

impl fmt::Display for NoSuchGpu {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<NoSuchGpu> for Failure {
    /// With nvidia-smi's exit code.
    fn from(error: NoSuchGpu) -> Self {
        Self::with_code(anyhow::anyhow!(error.0), 6)
    }
}

/// What this is the name of; `None` where it may be the UUID of a GPU that has not told its own yet.
pub(crate) fn find(name: &str, gpus: &[Gpu]) -> Result<Option<DeviceId>, NoSuchGpu> {
    let id = by_index(name, gpus)
        .or_else(|| by_uuid(name, gpus))
        .or_else(|| by_bus_id(name, gpus));
    let may_be_unread = name.contains('-') && gpus.iter().any(|gpu| gpu.uuid.is_none());
    if id.is_some() || may_be_unread {
        return Ok(id);
    }
    let uuids = gpus.iter().filter_map(|gpu| gpu.uuid.as_deref());
    let cure = match (nearest(name, uuids).filter(|_| name.len() > 8), gpus) {
        (Some(meant), _) => format!("did you mean '{meant}'?"),
        (None, []) => "there is none".to_owned(),
        (None, [only]) => format!("there is only {}", only.index),
        (None, [first, .., last]) => {
            format!(
                "there are {} to {}; give an index, a UUID or a PCI bus id",
                first.index, last.index
            )
        }
    };
    Err(NoSuchGpu(format!("no GPU '{name}': {cure}")))
}

/// `3`, or `3:1` for a MIG device.
fn by_index(name: &str, gpus: &[Gpu]) -> Option<DeviceId> {
    let (gpu, mig) = name
        .split_once(':')
        .map_or((name, None), |(gpu, mig)| (gpu, Some(mig)));
    let gpu = gpu
        .parse()
        .ok()
        .and_then(|index: u32| gpus.iter().find(|gpu| gpu.index == index))?;
    let mig = match mig {
        None => None,
        Some(mig) => {
            let index: u32 = mig.parse().ok()?;
            Some(
                gpu.mig_devices
                    .iter()
                    .find(|device| device.index == index)?
                    .index,
            )
        }
    };
    Some(DeviceId {
        gpu: gpu.index,
        mig,
    })
}

/// A UUID, or as much of its beginning as tells it from the others.
pub(crate) fn by_uuid(name: &str, gpus: &[Gpu]) -> Option<DeviceId> {
    let name = name.to_ascii_lowercase();
    if !["gpu-", "mig-"]
        .iter()
        .any(|kind| name.starts_with(kind) && name.len() > kind.len())
    {
        return None;
    }
    let begins = |uuid: &str| uuid.to_ascii_lowercase().starts_with(&name);
    let whole = gpus
        .iter()
        .filter(|gpu| gpu.uuid.as_deref().is_some_and(begins));
    let whole = whole.map(|gpu| DeviceId {
        gpu: gpu.index,
        mig: None,
    });
    let parts = gpus
        .iter()
        .flat_map(|gpu| gpu.mig_devices.iter().map(move |device| (gpu, device)));
    let parts = parts.filter(|(_, device)| begins(&device.uuid));
    let mut found = whole.chain(parts.map(|(gpu, device)| DeviceId {
        gpu: gpu.index,
        mig: Some(device.index),
    }));
    found.next().filter(|_| found.next().is_none())
}

/// A PCI bus id, however many digits its domain has, or without one.
fn by_bus_id(name: &str, gpus: &[Gpu]) -> Option<DeviceId> {
    let found = gpus.iter().find(|gpu| {
        gpu.pci_bus_id
            .value()
            .is_some_and(|known| is_same_bus_id(name, known))
    })?;
    Some(DeviceId {
        gpu: found.index,
        mig: None,
    })
}

#[cfg(test)]
pub(crate) mod tests {
    use gpumon_probe::model::{Absence, MigDevice, MigInstance, Reading};

    use super::*;

    /// GPUs `GPU-a0…`, `GPU-a1…` and so on, of which the last has two MIG devices.
    pub(crate) fn gpus(names: &[&str]) -> Vec<Gpu> {
        let absent = || Reading::Absent(Absence::Unknown);
        let device = |index: u32| MigDevice {
            index,
            uuid: format!("MIG-{index}c"),
            instance: MigInstance {
                gpu_instance: index + 7,
                compute_instance: 0,
            },
            profile: Reading::Absent(Absence::Unknown),
            multiprocessors: absent(),
            copy_engines: absent(),
            decoders: absent(),
            encoders: absent(),
        };
        let gpu = |(index, name): (usize, &&str)| Gpu {
            uuid: Some(format!("GPU-a{index}b1c2d3")),
            name: Reading::Now((*name).to_owned()),
            pci_bus_id: Reading::Now(format!("00000000:{:02X}:00.0", 0x1a + index)),
            mig_devices: if index + 1 == names.len() {
                vec![device(0), device(1)]
            } else {
                Vec::new()
            },
            ..Gpu::unidentified(index as u32, &Absence::Unknown)
        };
        names.iter().enumerate().map(gpu).collect()
    }

    #[test]
    fn a_gpu_has_many_names() {
        let gpus = gpus(&["H200", "H200", "H200"]);
        for name in [
            "1",
            "GPU-a1b1c2d3",
            "gpu-A1",
            "00000000:1B:00.0",
            "0000:1b:00.0",
            "1b:00.0",
        ] {
            assert_eq!(
                find(name, &gpus),
                Ok(Some(DeviceId { gpu: 1, mig: None })),
                "{name}"
            );
        }
        for name in ["2:1", "MIG-1c"] {
            assert_eq!(
                find(name, &gpus),
                Ok(Some(DeviceId {
                    gpu: 2,
                    mig: Some(1)
                })),
                "{name}"
            );
        }
    }

    #[test]
    fn a_name_of_no_gpu_is_refused_with_what_there_is() {
        let mut gpus = gpus(&["H200", "H200"]);
        for name in [
            "2", "1:2", "GPU-", "GPU-a", "GPU-ffff", "ff:00.0", "", "-1", "one",
        ] {
            let error = find(name, &gpus).unwrap_err().to_string();
            assert!(
                error.contains(&format!("'{name}'")) && error.contains("0 to 1"),
                "{error}"
            );
        }
        assert!(
            find("GPU-a1b1c2d4", &gpus)
                .unwrap_err()
                .to_string()
                .contains("did you mean 'GPU-a1b1c2d3'")
        );
        gpus[0].uuid = None;
        assert_eq!(
            find("GPU-ffff", &gpus),
            Ok(None),
            "it may be the one that has not told its own"
        );
        assert!(find("ff:00.0", &gpus).is_err());
    }
}
