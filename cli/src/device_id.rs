//! Search for a GPU or MIG device by the name that a user typed.

use std::fmt;

use gpumon_probe::model::{Gpu, GpuName, Vendor};

use crate::{exit::Failure, suggest::find_nearest};

/// The ID of a GPU with all its MIG devices, or of a single MIG device or partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DeviceId {
    pub(crate) gpu: u32,
    pub(crate) mig: Option<u32>,
}

/// The error for a name that matches no GPU, or more than one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct GpuLookupError {
    message: String,
    code: u8,
}

impl GpuLookupError {
    /// Returns the error for a name that matches no GPU. The exit code is the same as nvidia-smi's.
    pub(crate) fn new(message: String) -> Self {
        Self { message, code: 6 }
    }

    /// Returns the error for a name that may match more than one GPU.
    pub(crate) fn new_ambiguous(message: String) -> Self {
        Self { message, code: 2 }
    }
}

impl fmt::Display for GpuLookupError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl From<GpuLookupError> for Failure {
    fn from(error: GpuLookupError) -> Self {
        Self::with_code(anyhow::anyhow!(error.message), error.code)
    }
}

/// Finds the GPU, MIG device or partition called `name`. Returns `None` if nothing matches yet, but
/// `name` may be a UUID that has not been read.
///
/// # Errors
/// Returns an error if no GPU matches.
pub(crate) fn find_device(name: &str, gpus: &[Gpu]) -> Result<Option<DeviceId>, GpuLookupError> {
    let id = find_gpu(name, gpus)
        .or_else(|| find_mig_device_by_index(name, gpus))
        .or_else(|| find_by_uuid(name, gpus));
    let may_be_unread = name.contains('-') && gpus.iter().any(|gpu| gpu.uuid.is_none());
    if id.is_some() || may_be_unread {
        return Ok(id);
    }
    Err(GpuLookupError::new(format!(
        "there is no GPU '{name}': {}",
        suggest_names(name, gpus)
    )))
}

/// Finds a whole GPU by any name except its UUID.
fn find_gpu(name: &str, gpus: &[Gpu]) -> Option<DeviceId> {
    let name: GpuName = name.parse().ok()?;
    if matches!(name, GpuName::Uuid(_)) {
        return None;
    }
    let gpu = gpus.iter().find(|gpu| name.is_name_of(gpu))?;
    Some(DeviceId {
        gpu: gpu.index,
        mig: None,
    })
}

/// Finds a MIG device or partition by the GPU's name and the part's index, such as `3:1` or
/// `amd:0:1`.
fn find_mig_device_by_index(name: &str, gpus: &[Gpu]) -> Option<DeviceId> {
    let (gpu, index) = name.rsplit_once(':')?;
    let gpu = find_gpu(gpu, gpus)?.gpu;
    let index = index.parse().ok()?;
    let is_divided = |own: &&Gpu| own.index == gpu;
    let parts = &gpus.iter().find(is_divided)?.mig_devices;
    parts
        .iter()
        .any(|part| part.index == index)
        .then_some(DeviceId {
            gpu,
            mig: Some(index),
        })
}

/// Finds a GPU, MIG device or partition by its UUID or a unique prefix of its UUID. The UUID of an
/// AMD partition starts with the UUID of its GPU.
pub(crate) fn find_by_uuid(name: &str, gpus: &[Gpu]) -> Option<DeviceId> {
    let name = name.to_ascii_lowercase();
    let kinds = ["gpu-", "mig-", "pci-"];
    if !kinds
        .iter()
        .any(|kind| name.starts_with(kind) && name.len() > kind.len())
    {
        return None;
    }
    let whole: Vec<_> = gpus
        .iter()
        .filter_map(|gpu| {
            let id = DeviceId {
                gpu: gpu.index,
                mig: None,
            };
            Some((gpu.uuid.as_ref()?.to_ascii_lowercase(), id))
        })
        .collect();
    let parts: Vec<_> = gpus
        .iter()
        .flat_map(|gpu| gpu.mig_devices.iter().map(move |part| (gpu.index, part)))
        .map(|(gpu, part)| {
            let mig = Some(part.index);
            (part.uuid.to_ascii_lowercase(), DeviceId { gpu, mig })
        })
        .collect();
    let all = || whole.iter().chain(&parts);
    if let Some((_, id)) = all().find(|(uuid, _)| *uuid == name) {
        return Some(*id);
    }
    for uuids in [&whole, &parts] {
        let mut found = uuids.iter().filter(|(uuid, _)| uuid.starts_with(&name));
        if let Some((_, id)) = found.next() {
            return found.next().is_none().then_some(*id);
        }
    }
    None
}

/// Returns a clause that suggests similar or existing names, for an error message.
fn suggest_names(name: &str, gpus: &[Gpu]) -> String {
    let uuids = gpus.iter().filter_map(|gpu| gpu.uuid.as_deref());
    if let Some(meant) = find_nearest(name, uuids).filter(|_| name.len() > 8) {
        return format!("did you mean '{meant}'?");
    }
    if let Some((of, part)) = name.rsplit_once(':')
        && part.parse::<u32>().is_ok()
        && let Some(id) = find_gpu(of, gpus)
    {
        let mut divided = gpus.iter().filter(|gpu| gpu.index == id.gpu);
        let parts = divided.next().map_or(&[][..], |gpu| &gpu.mig_devices);
        let names = parts.iter().map(|part| format!("{of}:{}", part.index));
        return describe_available_names(names)
            .unwrap_or_else(|| format!("GPU {of} has no MIG devices or partitions"));
    }
    if let Some((vendor, _)) = name.split_once(':')
        && let Some(vendor) = Vendor::from_name(vendor)
    {
        let own = gpus.iter().filter(|gpu| gpu.vendor == vendor);
        let names = own
            .filter_map(|gpu| gpu.vendor_index)
            .map(|index| format!("{}:{index}", vendor.lower_name()));
        if let Some(names) = describe_available_names(names) {
            return names;
        }
    }
    let indices = describe_available_names(gpus.iter().map(|gpu| gpu.index.to_string()));
    let indices = indices.unwrap_or_else(|| "there are no GPUs".to_owned());
    if gpus.len() < 2 {
        return indices;
    }
    format!(
        "{indices}; give an index, a vendor and an index (such as amd:0), a UUID or a PCI bus ID"
    )
}

/// Returns a clause with the first and the last name, or `None` if there are no names.
fn describe_available_names(mut names: impl Iterator<Item = String>) -> Option<String> {
    let first = names.next()?;
    Some(match names.last() {
        None => format!("only {first} is available"),
        Some(last) => format!("{first} to {last} are available"),
    })
}

#[cfg(test)]
pub(crate) mod tests {
    use gpumon_probe::model::{Absence, MigDevice, MigInstance, Reading};

    use super::*;

    /// Returns GPUs with UUIDs such as `GPU-a0…` and `GPU-a1…`. The last GPU has two MIG devices.
    pub(crate) fn make_gpus(names: &[&str]) -> Vec<Gpu> {
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
            vendor_index: Some(index as u32),
            name: Reading::Now((*name).to_owned()),
            pci_bus_id: Reading::Now(format!("00000000:{:02X}:00.0", 0x1a + index)),
            mig_devices: if index + 1 == names.len() {
                vec![device(0), device(1)]
            } else {
                Vec::new()
            },
            ..Gpu::new_unidentified(index as u32, &Absence::Unknown)
        };
        names.iter().enumerate().map(gpu).collect()
    }

    /// Returns one NVIDIA GPU, a partitioned and an unpartitioned AMD GPU, and one Intel GPU.
    pub(crate) fn make_gpus_of_several_vendors() -> Vec<Gpu> {
        let part = |index, uuid: &str| MigDevice {
            index,
            uuid: format!("{uuid}.{index}"),
            ..make_gpus(&["MI300X"])[0].mig_devices[0].clone()
        };
        let gpu = |index, vendor, vendor_index, uuid: &str| Gpu {
            vendor,
            vendor_index: Some(vendor_index),
            uuid: Some(uuid.to_owned()),
            ..Gpu::new_unidentified(index, &Absence::Unknown)
        };
        let package = "GPU-a1b2c3d4e5f60718";
        vec![
            gpu(0, Vendor::Nvidia, 0, "GPU-a0b1c2d3"),
            Gpu {
                mig_devices: vec![part(0, package), part(1, package)],
                ..gpu(1, Vendor::Amd, 0, package)
            },
            gpu(2, Vendor::Amd, 1, "PCI-0000:83:00.0"),
            gpu(3, Vendor::Intel, 0, "PCI-0000:03:00.0"),
        ]
    }

    #[test]
    fn gpus_are_named_by_vendor_and_id() {
        let gpus = make_gpus_of_several_vendors();
        for (name, gpu, mig) in [
            ("nvidia:0", 0, None),
            ("amd:0", 1, None),
            ("AMD:1", 2, None),
            ("intel:0", 3, None),
            ("amd:0:1", 1, Some(1)),
            ("1:1", 1, Some(1)),
            ("GPU-a1b2c3d4e5f60718", 1, None),
            ("gpu-A1", 1, None),
            ("GPU-a1b2c3d4e5f60718.1", 1, Some(1)),
            ("PCI-0000:83:00.0", 2, None),
            ("pci-0000:03", 3, None),
        ] {
            assert_eq!(
                find_device(name, &gpus),
                Ok(Some(DeviceId { gpu, mig })),
                "{name}"
            );
        }
        for (name, there_is) in [
            ("amd:2", "amd:0 to amd:1 are available"),
            ("intel:1", "only intel:0 is available"),
            ("amd:0:7", "amd:0:0 to amd:0:1 are available"),
            ("AMD:1:0", "GPU AMD:1 has no MIG devices or partitions"),
            (
                "amd",
                "0 to 3 are available; give an index, a vendor and an index (such as amd:0)",
            ),
            (
                "GPU-a1b2c3d4e5f60718.",
                "did you mean 'GPU-a1b2c3d4e5f60718'?",
            ),
        ] {
            let error = find_device(name, &gpus).unwrap_err().to_string();
            assert_eq!(
                error
                    .strip_prefix(&format!("there is no GPU '{name}': "))
                    .map(|rest| rest.starts_with(there_is)),
                Some(true),
                "{error}"
            );
        }
        let error = find_device("amd:0", &gpus[..1]).unwrap_err().to_string();
        assert!(error.contains("only 0 is available"), "{error}");
    }

    #[test]
    fn gpu_is_found_by_any_of_its_names() {
        let gpus = make_gpus(&["H200", "H200", "H200"]);
        for name in [
            "1",
            "GPU-a1b1c2d3",
            "gpu-A1",
            "00000000:1B:00.0",
            "0000:1b:00.0",
            "1b:00.0",
        ] {
            assert_eq!(
                find_device(name, &gpus),
                Ok(Some(DeviceId { gpu: 1, mig: None })),
                "{name}"
            );
        }
        for name in ["2:1", "MIG-1c"] {
            assert_eq!(
                find_device(name, &gpus),
                Ok(Some(DeviceId {
                    gpu: 2,
                    mig: Some(1)
                })),
                "{name}"
            );
        }
    }

    #[test]
    fn unknown_gpu_error_lists_available_gpus() {
        let mut gpus = make_gpus(&["H200", "H200"]);
        for name in [
            "2", "1:2", "GPU-", "GPU-a", "GPU-ffff", "ff:00.0", "", "-1", "one",
        ] {
            let error = find_device(name, &gpus).unwrap_err().to_string();
            assert!(
                error.contains(&format!("'{name}'")) && error.contains("0 to 1"),
                "{error}"
            );
        }
        assert!(
            find_device("GPU-a1b1c2d4", &gpus)
                .unwrap_err()
                .to_string()
                .contains("did you mean 'GPU-a1b1c2d3'")
        );
        gpus[0].uuid = None;
        assert_eq!(
            find_device("GPU-ffff", &gpus),
            Ok(None),
            "it may be the one that has not told its own"
        );
        assert!(find_device("ff:00.0", &gpus).is_err());
    }
}
