//! The machine's PCIe devices and NUMA nodes, read from the kernel's files in `/sys`, and the
//! format of sets of CPUs or nodes.

use std::{
    fs,
    path::{Path, PathBuf},
};

use gpumon_probe::{bounded, model::PciPath};

#[derive(Debug)]
pub(super) struct Sysfs {
    root: PathBuf,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Device {
    /// The bus IDs on the path to the device, in this order: the host bridge, the bridges below it,
    /// and the device.
    path: Vec<String>,
    /// The device's NUMA node, or `None` if the machine has no NUMA nodes.
    node: Option<u32>,
}

impl Default for Sysfs {
    fn default() -> Self {
        Self {
            root: PathBuf::from("/sys"),
        }
    }
}

impl Sysfs {
    #[cfg(test)]
    pub(super) fn with_root(root: &Path) -> Self {
        Self {
            root: root.to_owned(),
        }
    }

    /// Returns the device with the given bus ID. The ID is in NVML's format, in which the domain
    /// has eight digits instead of the kernel's four.
    pub(super) fn find_device(&self, bus_id: &str) -> Option<Device> {
        let bus_id = bus_id.to_ascii_lowercase();
        let short = bus_id.split_once(':').map(|(domain, rest)| {
            let domain = domain
                .get(domain.len().saturating_sub(4)..)
                .unwrap_or(domain);
            format!("{domain}:{rest}")
        })?;
        Self::resolve_device(&self.root.join("bus/pci/devices").join(short))
    }

    /// Returns the names and devices of the InfiniBand cards, in the order of their numbers.
    pub(super) fn list_network_cards(&self) -> Vec<(String, Option<Device>)> {
        self.list_devices_of_class("infiniband")
    }

    /// Returns the names and devices of the `NVMe` disks, in the order of their numbers.
    pub(super) fn list_disks(&self) -> Vec<(String, Option<Device>)> {
        self.list_devices_of_class("nvme")
    }

    /// Returns the NUMA nodes, with the CPUs of each node.
    pub(super) fn list_numa_nodes(&self) -> Vec<(u32, Vec<u32>)> {
        let directory = self.root.join("devices/system/node");
        let mut nodes: Vec<_> = list_file_names(&directory)
            .into_iter()
            .filter_map(|name| {
                let node = name.strip_prefix("node")?.parse().ok()?;
                let cpus =
                    bounded::read_text(directory.join(&name).join("cpulist"), bounded::VALUE_LIMIT)
                        .ok()?;
                Some((node, parse_ranges(&cpus)))
            })
            .collect();
        nodes.sort_unstable();
        nodes
    }

    fn list_devices_of_class(&self, class: &str) -> Vec<(String, Option<Device>)> {
        let directory = self.root.join("class").join(class);
        let mut names = list_file_names(&directory);
        // Names are sorted by number, so that `mlx5_10` follows `mlx5_9`.
        names.sort_by_key(|name| {
            let digits = name
                .trim_end_matches(|character: char| character.is_ascii_digit())
                .len();
            (
                name[..digits].to_owned(),
                name[digits..].parse::<u64>().unwrap_or(0),
            )
        });
        names
            .into_iter()
            .map(|name| {
                let device = Self::resolve_device(&directory.join(&name).join("device"));
                (name, device)
            })
            .collect()
    }

    fn resolve_device(link: &Path) -> Option<Device> {
        let real = fs::canonicalize(link).ok()?;
        let node = bounded::read_text(real.join("numa_node"), bounded::VALUE_LIMIT)
            .ok()
            .and_then(|text| text.trim().parse().ok());
        let path = real
            .components()
            .map(|part| part.as_os_str().to_string_lossy().into_owned())
            .skip_while(|part| !part.starts_with("pci"))
            .collect::<Vec<_>>();
        (!path.is_empty()).then_some(Device { path, node })
    }
}

impl Device {
    pub(super) fn path_to(&self, other: &Self) -> PciPath {
        let common = self
            .path
            .iter()
            .zip(&other.path)
            .take_while(|(one, another)| one == another)
            .count();
        if common == 0 {
            return if self.node == other.node {
                PciPath::Node
            } else {
                PciPath::System
            };
        }
        if common == 1 {
            return PciPath::HostBridge;
        }
        // If the two devices are below the same PCIe switch, there is one switch port on the way to
        // each device.
        let ports = [self, other].map(|device| device.path.len().saturating_sub(common + 1));
        if ports.iter().all(|ports| *ports <= 1) {
            PciPath::Single
        } else {
            PciPath::Multiple
        }
    }
}

fn list_file_names(directory: &Path) -> Vec<String> {
    let Ok(entries) = fs::read_dir(directory) else {
        return Vec::new();
    };
    entries
        .flatten()
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect()
}

// Formatting and parsing of sets of CPUs or NUMA nodes as ranges, such as `0-3,8`.

/// Returns the indices of all bits that are set in `words`. The first word contains the lowest
/// bits.
pub(super) fn list_set_bits(words: &[u64]) -> Vec<u32> {
    let bits = words.iter().zip(0u32..).flat_map(|(word, place)| {
        (0..u64::BITS)
            .filter(move |bit| word >> bit & 1 == 1)
            .map(move |bit| place * u64::BITS + bit)
    });
    bits.collect()
}

/// Formats the indices of all bits that are set in `words` as ranges.
pub(super) fn format_bit_ranges(words: &[u64]) -> String {
    format_ranges(&list_set_bits(words))
}

/// Formats numbers, which must be in ascending order, as ranges.
pub(super) fn format_ranges(numbers: &[u32]) -> String {
    numbers
        .chunk_by(|before, after| before + 1 == *after)
        .map(|range| match range {
            [only] => only.to_string(),
            [first, .., last] => format!("{first}-{last}"),
            [] => String::new(),
        })
        .collect::<Vec<_>>()
        .join(",")
}

/// Parses ranges in the kernel's format and returns the numbers that they contain.
pub(super) fn parse_ranges(text: &str) -> Vec<u32> {
    text.trim()
        .split(',')
        .filter_map(|range| {
            let (first, last) = range.split_once('-').unwrap_or((range, range));
            Some(first.parse().ok()?..=last.parse().ok()?)
        })
        .flatten()
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn make_device(path: &str, node: u32) -> Device {
        Device {
            path: path.split('/').map(str::to_owned).collect(),
            node: Some(node),
        }
    }

    #[test]
    fn topology_path_type_depends_on_shared_bridges() {
        let gpu = make_device(
            "pci0000:15/0000:15:01.0/0000:16:00.0/0000:17:00.0/0000:18:00.0",
            0,
        );
        for (path, node, level) in [
            (
                "pci0000:15/0000:15:01.0/0000:16:00.0/0000:17:01.0/0000:19:00.0",
                0,
                PciPath::Single,
            ),
            (
                "pci0000:15/0000:15:01.0/0000:16:00.0/0000:17:02.0/0000:1a:00.0/0000:1b:00.0/0000:1c:00.0",
                0,
                PciPath::Multiple,
            ),
            (
                "pci0000:15/0000:15:02.0/0000:20:00.0",
                0,
                PciPath::HostBridge,
            ),
            ("pci0000:37/0000:37:01.0/0000:38:00.0", 0, PciPath::Node),
            ("pci0000:97/0000:97:01.0/0000:98:00.0", 1, PciPath::System),
        ] {
            let other = make_device(path, node);
            assert_eq!(gpu.path_to(&other), level, "{path}");
            assert_eq!(other.path_to(&gpu), level, "{path}");
        }
    }
}

#[cfg(test)]
mod ranges_tests {
    use super::*;

    #[test]
    fn cpu_ranges_survive_round_trip() {
        assert_eq!(format_bit_ranges(&[0xFFFF_FFFF]), "0-31");
        assert_eq!(format_bit_ranges(&[1 << 6 | 1 << 14, 1]), "6,14,64");
        assert_eq!(format_bit_ranges(&[0]), "");
        assert_eq!(parse_ranges("0-2,8\n"), [0, 1, 2, 8]);
        assert_eq!(format_ranges(&parse_ranges("0-55,112-167")), "0-55,112-167");
    }
}
