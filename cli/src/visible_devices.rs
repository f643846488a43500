//! The GPUs that a program may use according to environment variables, which a scheduler may set
//! for a job. `--only-visible` shows only these GPUs. `gpumon wait` chooses among these GPUs and
//! sets the same variables for its command.
//!
//! gpumon numbers GPUs in PCI bus order. CUDA and Level Zero use a different order unless a
//! variable selects the PCI bus order. If all GPUs are of the same model, the orders are identical.

use std::{collections::BTreeSet, env, fmt};

use gpumon_probe::model::{Absence, Gpu, MigInstance, Vendor};

use crate::device_id::{DeviceId, find_by_uuid};

const CUDA: &str = "CUDA_VISIBLE_DEVICES";
const ROCR: &str = "ROCR_VISIBLE_DEVICES";
const HIP: &str = "HIP_VISIBLE_DEVICES";
const LEVEL_ZERO: &str = "ZE_AFFINITY_MASK";

/// The variable that AMD's OpenCL runtime reads instead of [`HIP`].
const OPENCL: &str = "GPU_DEVICE_ORDINAL";

/// The variables that select PCI bus order, each with the required value.
const CUDA_ORDER: (&str, &str) = ("CUDA_DEVICE_ORDER", "PCI_BUS_ID");
const LEVEL_ZERO_ORDER: (&str, &str) = ("ZE_ENABLE_PCI_ID_DEVICE_ORDER", "1");

/// All variables that restrict which GPUs programs use, or select the order of GPUs.
pub(crate) const VISIBILITY_VARIABLES: [&str; 7] = [
    CUDA,
    CUDA_ORDER.0,
    ROCR,
    HIP,
    OPENCL,
    LEVEL_ZERO,
    LEVEL_ZERO_ORDER.0,
];

/// The variables that are set in this process's environment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct VisibilityVariables {
    cuda: Option<Mask>,
    rocr: Option<Mask>,
    hip: Option<Mask>,
    level_zero: Option<Mask>,
}

/// The list of GPUs in one of the variables.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Mask {
    variable: &'static str,
    text: String,
    /// The variable and the value with which the numbers would follow PCI bus order; `None` if they
    /// already do.
    missing_order: Option<(&'static str, &'static str)>,
}

impl Mask {
    fn read(variable: &'static str, order: Option<(&'static str, &'static str)>) -> Option<Self> {
        let text = env::var_os(variable)?.to_string_lossy().into_owned();
        let is_missing =
            |(name, value): &(_, &str)| env::var_os(name).is_none_or(|own| own != *value);
        Some(Self {
            variable,
            text,
            missing_order: order.filter(is_missing),
        })
    }

    /// Returns the devices in the list. As in CUDA and ROCr, the list ends at the first invalid
    /// entry.
    fn select(&self, devices: &[DeviceId], gpus: &[Gpu]) -> Result<Vec<DeviceId>, String> {
        let mut ids = Vec::new();
        for entry in self.text.split(',').map(str::trim) {
            // Level Zero also accepts parts of a GPU, such as `0.1`, which count as the whole GPU.
            let whole = entry
                .split_once('.')
                .filter(|_| self.variable == LEVEL_ZERO);
            let id = match whole.map_or(entry, |(whole, _)| whole).parse::<i64>() {
                Ok(number) => {
                    self.check_device_order(devices, gpus)?;
                    let place = usize::try_from(number).ok();
                    place.and_then(|place| devices.get(place).copied())
                }
                Err(_) => find_by_uuid(entry, gpus).or_else(|| find_by_instance(entry, gpus)),
            };
            match id {
                Some(id) => ids.push(id),
                None => break,
            }
        }
        Ok(ids)
    }

    /// Returns an error if it is unclear to which devices the numbers in the list refer.
    fn check_device_order(&self, devices: &[DeviceId], gpus: &[Gpu]) -> Result<(), String> {
        let is_listed = |gpu: &&Gpu| devices.iter().any(|id| id.gpu == gpu.index);
        let models: BTreeSet<_> = gpus
            .iter()
            .filter(is_listed)
            .map(|gpu| gpu.name.value())
            .collect();
        match self.missing_order {
            Some((name, value)) if models.len() > 1 => Err(format!(
                "cannot resolve the GPU numbers in {self}, because the GPUs are of different \
                 models: set {name}={value}, or use UUIDs"
            )),
            _ => Ok(()),
        }
    }
}

impl VisibilityVariables {
    /// Reads the variables from the environment. Returns `None` if they do not restrict GPUs.
    pub(crate) fn from_environment() -> Option<Self> {
        // An empty list in `HIP_VISIBLE_DEVICES` or `ZE_AFFINITY_MASK` allows all GPUs, so it is
        // ignored. An empty list in a variable of CUDA or ROCr allows no GPU.
        let is_list = |mask: &Mask| !mask.text.is_empty();
        let visible = Self {
            cuda: Mask::read(CUDA, Some(CUDA_ORDER)),
            rocr: Mask::read(ROCR, None),
            hip: Mask::read(HIP, None).filter(is_list),
            level_zero: Mask::read(LEVEL_ZERO, Some(LEVEL_ZERO_ORDER)).filter(is_list),
        };
        (visible != Self::default()).then_some(visible)
    }

    /// Returns the GPUs of all vendors that the variables allow.
    ///
    /// # Errors
    /// Returns an error if it is unclear to which GPU a number refers.
    pub(crate) fn list_allowed_devices(&self, gpus: &[Gpu]) -> Result<Vec<DeviceId>, String> {
        let has_cuda = gpus.iter().any(|gpu| gpu.vendor == Vendor::Nvidia);
        let mut ids = Vec::new();
        for vendor in Vendor::ALL {
            let masks = match vendor {
                Vendor::Nvidia => [self.cuda.as_ref(), None],
                Vendor::Amd => {
                    // On a machine without CUDA, HIP also reads `CUDA_VISIBLE_DEVICES`. Its indices
                    // count only the GPUs that `ROCR_VISIBLE_DEVICES` allows.
                    let alias = self.cuda.as_ref().filter(|mask| !mask.text.is_empty());
                    let alias = alias.filter(|_| !has_cuda);
                    [self.rocr.as_ref(), self.hip.as_ref().or(alias)]
                }
                Vendor::Intel => [self.level_zero.as_ref(), None],
            };
            let masks: Vec<_> = masks.into_iter().flatten().collect();
            if masks.is_empty() {
                let own = gpus.iter().filter(|gpu| gpu.vendor == vendor);
                ids.extend(own.map(|gpu| DeviceId {
                    gpu: gpu.index,
                    mig: None,
                }));
                continue;
            }
            let mut allowed = list_devices(gpus, vendor);
            for mask in masks {
                allowed = mask.select(&allowed, gpus)?;
            }
            ids.extend(allowed);
        }
        Ok(ids)
    }
}

/// Returns a vendor's devices in the order in which the vendor's library numbers them. AMD's ROCr
/// numbers each partition separately; CUDA gives a partitioned GPU a single number.
fn list_devices(gpus: &[Gpu], vendor: Vendor) -> Vec<DeviceId> {
    let mut own: Vec<_> = gpus
        .iter()
        .filter(|gpu| gpu.vendor == vendor && gpu.vendor_index.is_some())
        .collect();
    own.sort_by_key(|gpu| gpu.vendor_index);
    // ROCr omits GPUs that are not in the compute driver's topology, such as GPUs of other jobs.
    // The architecture of such a GPU is unknown. If the architecture of every GPU is unknown, the
    // reason is an old driver, and all GPUs are kept.
    let is_in_topology =
        |gpu: &&Gpu| gpu.board.architecture.absence() != Some(&Absence::NotSupported);
    if vendor == Vendor::Amd && own.iter().any(is_in_topology) {
        own.retain(is_in_topology);
    }
    let devices = own.into_iter().flat_map(|gpu| {
        let parts = gpu.mig_devices.iter().filter(|_| vendor == Vendor::Amd);
        let mut places: Vec<_> = parts.map(|part| Some(part.index)).collect();
        if places.is_empty() {
            places.push(None);
        }
        places.into_iter().map(|mig| DeviceId {
            gpu: gpu.index,
            mig,
        })
    });
    devices.collect()
}

/// Finds a MIG device by the older format of its name, `MIG-GPU-UUID/GPU instance/compute
/// instance`.
fn find_by_instance(entry: &str, gpus: &[Gpu]) -> Option<DeviceId> {
    let mut parts = entry.strip_prefix("MIG-")?.split('/');
    let gpu = find_by_uuid(parts.next()?, gpus)?.gpu;
    let (gpu_instance, compute_instance): (u32, u32) =
        (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
    let mut devices = gpus
        .iter()
        .find(|found| found.index == gpu)?
        .mig_devices
        .iter();
    let is_it = |instance: MigInstance| {
        (instance.gpu_instance, instance.compute_instance) == (gpu_instance, compute_instance)
    };
    devices
        .find(|device| is_it(device.instance))
        .map(|device| DeviceId {
            gpu,
            mig: Some(device.index),
        })
}

/// The name by which a GPU is listed in its vendor's variables.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct VisibleName {
    vendor: Vendor,
    name: String,
}

impl VisibleName {
    /// Returns the name of a GPU, MIG device or partition. Returns `None` if neither its UUID nor
    /// its number is known.
    pub(crate) fn new(id: DeviceId, gpus: &[Gpu]) -> Option<Self> {
        let gpu = gpus.iter().find(|gpu| gpu.index == id.gpu)?;
        let vendor = gpu.vendor;
        let uuid = || match id.mig {
            None => gpu.uuid.clone(),
            Some(index) => {
                let mut parts = gpu.mig_devices.iter();
                Some(parts.find(|part| part.index == index)?.uuid.clone())
            }
        };
        // Some GPUs have no ID, and a partition only has the ID of its GPU. In these cases, the
        // position is used instead of the UUID.
        let has_own_id = || id.mig.is_none() && uuid().is_some_and(|uuid| uuid.starts_with("GPU-"));
        let name = match vendor {
            Vendor::Nvidia => uuid()?,
            Vendor::Amd if has_own_id() => uuid()?,
            Vendor::Amd | Vendor::Intel => {
                let devices = list_devices(gpus, vendor);
                devices.iter().position(|own| *own == id)?.to_string()
            }
        };
        Some(Self { vendor, name })
    }

    /// Returns the variables that restrict a command to the chosen GPUs.
    pub(crate) fn to_variables(chosen: &[Self]) -> Vec<(&'static str, String)> {
        let mut variables = Vec::new();
        for vendor in Vendor::ALL {
            let own = chosen.iter().filter(|own| own.vendor == vendor);
            let names: Vec<_> = own.map(|own| own.name.as_str()).collect();
            if names.is_empty() {
                continue;
            }
            let order = |(name, value): (&'static str, &str)| (name, value.to_owned());
            match vendor {
                Vendor::Nvidia => variables.extend([(CUDA, names.join(",")), order(CUDA_ORDER)]),
                Vendor::Amd => {
                    // The indices in `HIP_VISIBLE_DEVICES` count only the GPUs that
                    // `ROCR_VISIBLE_DEVICES` allows.
                    let places: Vec<_> = (0..names.len()).map(|place| place.to_string()).collect();
                    let places = places.join(",");
                    variables.extend([
                        (ROCR, names.join(",")),
                        (HIP, places.clone()),
                        (OPENCL, places),
                    ]);
                }
                Vendor::Intel => {
                    variables.extend([(LEVEL_ZERO, names.join(",")), order(LEVEL_ZERO_ORDER)]);
                }
            }
        }
        variables
    }
}

impl fmt::Display for Mask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.variable, self.text.escape_debug())
    }
}

impl fmt::Display for VisibilityVariables {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let masks = [&self.cuda, &self.rocr, &self.hip, &self.level_zero];
        let masks: Vec<_> = masks.into_iter().flatten().map(Mask::to_string).collect();
        f.write_str(&masks.join(" "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device_id::tests::{make_gpus, make_gpus_of_several_vendors};

    fn make_mask(variable: &'static str, text: &str) -> Mask {
        Mask {
            variable,
            text: text.to_owned(),
            missing_order: None,
        }
    }

    fn to_id_pairs(ids: Vec<DeviceId>) -> Vec<(u32, Option<u32>)> {
        ids.into_iter().map(|id| (id.gpu, id.mig)).collect()
    }

    fn list_allowed_ids(
        text: &str,
        in_pci_order: bool,
        names: &[&str],
    ) -> Result<Vec<(u32, Option<u32>)>, String> {
        let mut visible = VisibilityVariables {
            cuda: Some(make_mask(CUDA, text)),
            ..VisibilityVariables::default()
        };
        if let Some(cuda) = visible.cuda.as_mut().filter(|_| !in_pci_order) {
            cuda.missing_order = Some(CUDA_ORDER);
        }
        visible
            .list_allowed_devices(&make_gpus(names))
            .map(to_id_pairs)
    }

    #[test]
    fn invalid_entry_ends_visible_devices_list() {
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
            assert_eq!(list_allowed_ids(text, false, &alike), Ok(ids), "{text}");
        }
    }

    #[test]
    fn visible_numbers_of_mixed_models_require_pci_order() {
        let mixed = ["H200", "L4"];
        assert_eq!(list_allowed_ids("1", true, &mixed), Ok(vec![(1, None)]));
        assert_eq!(
            list_allowed_ids("GPU-a1", false, &mixed),
            Ok(vec![(1, None)])
        );
        assert!(
            list_allowed_ids("1", false, &mixed)
                .unwrap_err()
                .contains("CUDA_DEVICE_ORDER=PCI_BUS_ID")
        );
    }

    #[test]
    fn each_visibility_variable_restricts_its_own_vendor() {
        let gpus = make_gpus_of_several_vendors();
        let (nvidia, divided, intel) = ((0, None), (1, None), (3, None));
        let amd = [(1, Some(0)), (1, Some(1)), (2, None)];
        let visible = |variables: &[(&'static str, &str)]| {
            let find = |name| {
                let mut set = variables.iter().filter(|(own, _)| *own == name);
                set.next().map(|(name, text)| make_mask(name, text))
            };
            VisibilityVariables {
                cuda: find(CUDA),
                rocr: find(ROCR),
                hip: find(HIP),
                level_zero: find(LEVEL_ZERO),
            }
        };
        for (variables, allowed) in [
            (&[(CUDA, "")][..], vec![divided, amd[2], intel]),
            (&[(ROCR, "2,1")], vec![nvidia, amd[2], amd[1], intel]),
            (&[(ROCR, "2,1"), (HIP, "0")], vec![nvidia, amd[2], intel]),
            (&[(HIP, "0")], vec![nvidia, amd[0], intel]),
            (&[(LEVEL_ZERO, "1")], vec![nvidia, divided, amd[2]]),
            (&[(LEVEL_ZERO, "0.1")], vec![nvidia, divided, amd[2], intel]),
        ] {
            let ids = visible(variables)
                .list_allowed_devices(&gpus)
                .map(to_id_pairs);
            assert_eq!(ids, Ok(allowed), "{variables:?}");
        }
        // On a machine without CUDA, HIP reads `CUDA_VISIBLE_DEVICES`.
        let ids = visible(&[(CUDA, "2")])
            .list_allowed_devices(&gpus[1..])
            .map(to_id_pairs);
        assert_eq!(ids, Ok(vec![amd[2], intel]));
    }

    #[test]
    fn gpus_outside_topology_are_not_numbered() {
        let mut gpus = make_gpus_of_several_vendors();
        for (gpu, target) in gpus[1..3].iter_mut().zip([None, Some("gfx1100")]) {
            gpu.board.architecture = target
                .map(str::to_owned)
                .ok_or(Absence::NotSupported)
                .into();
        }
        let visible = VisibilityVariables {
            rocr: Some(make_mask(ROCR, "0")),
            ..VisibilityVariables::default()
        };
        assert!(
            visible
                .list_allowed_devices(&gpus)
                .unwrap()
                .contains(&DeviceId { gpu: 2, mig: None })
        );
    }

    #[test]
    fn command_gets_variables_of_its_gpus_vendor() {
        let gpus = make_gpus_of_several_vendors();
        let variables = |ids: &[(u32, Option<u32>)]| {
            let chosen: Vec<_> = ids
                .iter()
                .filter_map(|(gpu, mig)| {
                    VisibleName::new(
                        DeviceId {
                            gpu: *gpu,
                            mig: *mig,
                        },
                        &gpus,
                    )
                })
                .collect();
            let variables = VisibleName::to_variables(&chosen);
            let texts: Vec<_> = variables
                .iter()
                .map(|(name, value)| format!("{name}={value}"))
                .collect();
            texts.join(" ")
        };
        assert_eq!(
            variables(&[(0, None)]),
            "CUDA_VISIBLE_DEVICES=GPU-a0b1c2d3 CUDA_DEVICE_ORDER=PCI_BUS_ID"
        );
        assert_eq!(
            variables(&[(1, None)]),
            "ROCR_VISIBLE_DEVICES=GPU-a1b2c3d4e5f60718 HIP_VISIBLE_DEVICES=0 GPU_DEVICE_ORDINAL=0"
        );
        assert_eq!(
            variables(&[(1, Some(1)), (2, None)]),
            "ROCR_VISIBLE_DEVICES=1,2 HIP_VISIBLE_DEVICES=0,1 GPU_DEVICE_ORDINAL=0,1"
        );
        assert_eq!(
            variables(&[(3, None)]),
            "ZE_AFFINITY_MASK=0 ZE_ENABLE_PCI_ID_DEVICE_ORDER=1"
        );
    }
}
