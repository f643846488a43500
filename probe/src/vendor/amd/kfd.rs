//! The kernel's compute driver (KFD): its GPU topology and its processes.
//!
//! Source: `kfd_topology.c` and `kfd_process.c` in the kernel.

use std::{
    collections::HashMap,
    fs, io,
    path::{Path, PathBuf},
};

use crate::{
    bounded,
    model::Absence,
    vendor::drm::{Attributes, list_numbers},
};

/// The maximum size of a properties file, in bytes.
const MAX_PROPERTIES_BYTES: usize = 16 << 10;

/// The number of the link type XGMI in KFD's topology.
const XGMI_LINK_TYPE: u64 = 11;

/// A node in KFD's topology: a GPU or a partition that can compute.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct KfdNode {
    /// The node's number in the topology.
    pub(super) number: u32,
    /// The node's ID in the files of compute processes.
    pub(super) gpu_id: u32,
    properties: HashMap<String, u64>,
    folder: PathBuf,
}

/// Returns the compute driver's sysfs folder. Symbolic links are resolved if possible, because
/// paths without links are faster to open.
pub(super) fn find_kfd_folder(sys_root: &Path) -> PathBuf {
    let root = sys_root.join("class/kfd/kfd");
    root.canonicalize().unwrap_or(root)
}

/// Returns the topology's GPU nodes, sorted by number. GPUs that this container may not use are
/// excluded.
pub(super) fn find_nodes(root: &Path) -> Vec<KfdNode> {
    let folder = root.join("topology/nodes");
    let mut nodes: Vec<_> = list_numbers(&folder)
        .into_iter()
        .filter_map(|number| KfdNode::read(&folder, number))
        .collect();
    nodes.sort_by_key(|node| node.number);
    nodes
}

/// Returns the number of topology nodes that this process may not read, such as GPUs of other
/// containers.
///
/// # Errors
/// Returns an error if the topology does not exist or cannot be read.
pub(super) fn count_hidden_nodes(sys_root: &Path) -> io::Result<usize> {
    let nodes = find_kfd_folder(sys_root).join("topology/nodes");
    let is_hidden = |folder: &PathBuf| {
        let id = Attributes::new(folder).read_number::<u64>("gpu_id");
        matches!(id, Err(Absence::NoAnswer | Absence::NoPermission))
    };
    let folders = fs::read_dir(nodes)?.flatten().map(|entry| entry.path());
    Ok(folders.filter(is_hidden).count())
}

/// Returns the generation number, which the kernel increments when the topology changes.
pub(super) fn read_generation(root: &Path) -> Option<u64> {
    Attributes::new(root.join("topology"))
        .read_number("generation_id")
        .ok()
}

impl KfdNode {
    /// Reads a node. Returns `None` if it is a CPU or cannot be read.
    fn read(nodes: &Path, number: u32) -> Option<Self> {
        let folder = nodes.join(number.to_string());
        let gpu_id = Attributes::new(&folder)
            .read_number("gpu_id")
            .ok()
            .filter(|id| *id != 0)?;
        let text = bounded::read_text(folder.join("properties"), MAX_PROPERTIES_BYTES).ok()?;
        Some(Self::parse(number, gpu_id, &text, folder))
    }

    /// Parses a node's properties file. `folder` contains the node's other files.
    pub(super) fn parse(number: u32, gpu_id: u32, text: &str, folder: PathBuf) -> Self {
        let properties = parse_properties(text);
        Self {
            number,
            gpu_id,
            properties,
            folder,
        }
    }

    fn get_property(&self, name: &str) -> Option<u64> {
        self.properties.get(name).copied()
    }

    /// Returns the PCI bus ID of the GPU package, for example `00000000:3B:00.0`.
    pub(super) fn bus_id(&self) -> Option<String> {
        let location = self.get_property("location_id")?;
        let domain = self.get_property("domain").unwrap_or(0);
        let (bus, device) = (location >> 8 & 0xff, location >> 3 & 0x1f);
        Some(format!("{domain:08X}:{bus:02X}:{device:02X}.0"))
    }

    /// Returns the partition number from the location ID. The number is either in the four highest
    /// bits or in the three bits of the PCI function. The others of these bits are 0.
    pub(super) fn partition_number(&self) -> u32 {
        let location = self.get_property("location_id").unwrap_or(0);
        let number = (location >> 28 & 0xf).max(location & 0x7);
        u32::try_from(number).unwrap_or(0)
    }

    /// Returns the minor number of the node's render node in `/dev/dri`.
    pub(super) fn render_minor(&self) -> Option<u32> {
        u32::try_from(self.get_property("drm_render_minor")?).ok()
    }

    pub(super) fn compute_units(&self) -> Option<u32> {
        let (units, in_each) = (
            self.get_property("simd_count")?,
            self.get_property("simd_per_cu")?,
        );
        u32::try_from(units.checked_div(in_each)?)
            .ok()
            .filter(|units| *units > 0)
    }

    /// Returns the compiler target's name, for example `gfx942`. The last two parts of the version
    /// are single hexadecimal digits.
    pub(super) fn compiler_target(&self) -> Option<String> {
        let version = self
            .get_property("gfx_target_version")
            .filter(|version| *version > 0)?;
        let (major, minor, step) = (version / 10_000, version / 100 % 100, version % 100);
        Some(format!("gfx{major}{minor:x}{step:x}"))
    }

    /// Reads the node's total and used memory, in bytes.
    pub(super) fn read_memory(&self) -> (Result<u64, Absence>, Result<u64, Absence>) {
        let bank = Attributes::new(self.folder.join("mem_banks/0"));
        let properties = read_properties(bank.folder());
        let total = properties.get("size_in_bytes").copied();
        (
            total.ok_or(Absence::NotSupported),
            bank.read_number("used_memory"),
        )
    }

    /// Returns the memory bus width in bits.
    pub(super) fn memory_bus_bits(&self) -> Option<u32> {
        let properties = read_properties(&self.folder.join("mem_banks/0"));
        u32::try_from(*properties.get("width")?)
            .ok()
            .filter(|bits| *bits > 0)
    }

    /// Returns the numbers of the nodes that are linked to this one by XGMI.
    pub(super) fn xgmi_peers(&self) -> Vec<u32> {
        let folder = self.folder.join("io_links");
        let peer = |link: u32| {
            let properties = read_properties(&folder.join(link.to_string()));
            let is_xgmi = properties.get("type") == Some(&XGMI_LINK_TYPE);
            is_xgmi.then(|| u32::try_from(*properties.get("node_to")?).ok())?
        };
        list_numbers(&folder).into_iter().filter_map(peer).collect()
    }
}

/// Returns the PIDs of all compute processes.
pub(super) fn list_processes(root: &Path) -> Vec<u32> {
    list_numbers(&root.join("proc"))
}

/// Returns the sysfs files of a compute process.
pub(super) fn process_files(root: &Path, pid: u32) -> Attributes {
    Attributes::new(root.join("proc").join(pid.to_string()))
}

/// Returns `true` if `process` has a queue on the node with the ID `gpu_id`.
pub(super) fn has_queue(process: &Attributes, gpu_id: u32) -> bool {
    let queues = process.folder().join("queues");
    let mut numbers = list_numbers(&queues).into_iter();
    numbers.any(|number| process.read_number(&format!("queues/{number}/gpuid")) == Ok(gpu_id))
}

/// Reads the properties file in `folder`. Returns an empty map if the file cannot be read.
fn read_properties(folder: &Path) -> HashMap<String, u64> {
    let text = bounded::read_text(folder.join("properties"), MAX_PROPERTIES_BYTES);
    text.map(|text| parse_properties(&text)).unwrap_or_default()
}

/// Parses lines that each consist of a name and a decimal number.
fn parse_properties(text: &str) -> HashMap<String, u64> {
    let pairs = text.lines().filter_map(|line| {
        let (name, value) = line.split_once(' ')?;
        Some((name.to_owned(), value.trim().parse().ok()?))
    });
    pairs.collect()
}

#[cfg(test)]
pub(super) mod tests {
    use std::fs;

    use super::*;

    /// Writes a recorded topology to `sys_root`. In a recording, the content of each file follows a
    /// line with the file's path. Returns `false` if there is no recording called `name`.
    pub(crate) fn write_recorded(sys_root: &Path, name: &str) -> bool {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/reference/dumps/kfd");
        let Ok(text) = fs::read_to_string(folder.join(name)) else {
            return false;
        };
        for part in text.split("### ").skip(1) {
            let (path, content) = part.split_once('\n').unwrap();
            let file = sys_root.join("class/kfd/kfd/topology").join(path.trim());
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            let content = content.trim_end().to_owned() + "\n";
            // One of the recordings does not contain the node IDs, so they are made up here.
            let id = file.with_file_name("gpu_id");
            if path.trim().split('/').count() == 3
                && path.trim().ends_with("/properties")
                && !id.exists()
            {
                let is_gpu = parse_properties(&content)["simd_count"] > 0;
                fs::write(id, if is_gpu { "4711\n" } else { "0\n" }).unwrap();
            }
            fs::write(file, content).unwrap();
        }
        true
    }

    #[test]
    fn partitions_of_recorded_mi308x_share_packages() {
        let root = tempfile::tempdir().unwrap();
        if !write_recorded(root.path(), "mi308x-cpx-32.txt") {
            return;
        }
        let nodes = find_nodes(&find_kfd_folder(root.path()));
        assert_eq!(nodes.len(), 32);
        let mut packages: HashMap<_, Vec<_>> = HashMap::new();
        for node in &nodes {
            packages
                .entry(node.bus_id().unwrap())
                .or_default()
                .push(node);
        }
        assert_eq!(packages.len(), 8);
        for (bus_id, partitions) in packages {
            let numbers: Vec<_> = partitions
                .iter()
                .map(|node| node.partition_number())
                .collect();
            assert_eq!(numbers, [0, 1, 2, 3], "{bus_id}");
            let ids: Vec<_> = partitions
                .iter()
                .map(|node| node.get_property("unique_id"))
                .collect();
            assert!(
                ids.iter().all(|id| *id == ids[0] && id.is_some()),
                "{bus_id}"
            );
            for node in partitions {
                assert_eq!(node.compiler_target().as_deref(), Some("gfx942"));
                let size = node.read_memory().0.unwrap();
                assert!((47..=48).contains(&(size >> 30)), "{size}");
                assert!(node.read_memory().1.is_ok());
                assert_eq!(node.compute_units(), Some(20));
            }
        }
    }

    #[test]
    fn recorded_mi210_pairs_are_linked() {
        let root = tempfile::tempdir().unwrap();
        if !write_recorded(root.path(), "mi210-8x.txt") {
            return;
        }
        let nodes = find_nodes(&find_kfd_folder(root.path()));
        assert_eq!(nodes.len(), 8);
        let peers: Vec<_> = nodes.iter().map(|node| node.xgmi_peers().len()).collect();
        assert!(peers.iter().all(|count| *count > 0), "{peers:?}");
        assert_eq!(nodes[0].compiler_target().as_deref(), Some("gfx90a"));
        assert_eq!(nodes[0].compute_units(), Some(104));
    }

    #[test]
    fn old_topology_without_domain_is_read() {
        let root = tempfile::tempdir().unwrap();
        if write_recorded(root.path(), "mi50-old.txt") {
            let nodes = find_nodes(&find_kfd_folder(root.path()));
            assert!(!nodes.is_empty());
            assert!(
                nodes
                    .iter()
                    .all(|node| node.bus_id().is_some() && node.compiler_target().is_none())
            );
        }
    }

    #[test]
    fn partition_number_is_read_from_both_formats() {
        let node = |location: u64| KfdNode {
            number: 1,
            gpu_id: 1,
            properties: HashMap::from([("location_id".to_owned(), location)]),
            folder: PathBuf::new(),
        };
        assert_eq!(node(0x500).partition_number(), 0);
        assert_eq!(node(0x503).partition_number(), 3);
        assert_eq!(node(0x2000_0500).partition_number(), 2);
        assert_eq!(
            node(0x2000_0500).bus_id().as_deref(),
            Some("00000000:05:00.0")
        );
    }

    #[test]
    fn invalid_topology_properties_are_skipped() {
        let properties = parse_properties("a 1\nb\nc -1\nd 18446744073709551616\ne 2 \n\n");
        assert_eq!(
            properties,
            HashMap::from([("a".to_owned(), 1), ("e".to_owned(), 2)])
        );
    }
}
