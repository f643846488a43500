//! Simulated files of the kernel's compute driver (KFD).

use crate::tree::{self, Tree};

/// The compute nodes of a package: the package itself, or its partitions.
#[derive(Debug, Clone)]
pub struct Package {
    /// The PCI address of the card.
    pub address: String,
    /// The number of the first node. Node 0 is the CPU.
    pub first_node: u32,
    /// The minor number of the first render node.
    pub first_minor: u32,
    /// The number of partitions, or 1 if the package is not divided.
    pub partitions: u32,
    /// The number of compute units in each partition.
    pub compute_units: u32,
    /// The total and the used memory of each partition, in bytes.
    pub memory_bytes: [u64; 2],
    /// The version of the instruction set. For example, 90402 is `gfx942`.
    pub target: u32,
}

impl Package {
    /// Creates an undivided MI300X.
    pub fn make_mi300x(address: &str, first_node: u32, first_minor: u32) -> Self {
        Self {
            address: address.to_owned(),
            first_node,
            first_minor,
            partitions: 1,
            compute_units: 304,
            memory_bytes: [206_141_652_992, 103_079_215_104],
            target: 90_402,
        }
    }

    /// Creates an MI300X with eight partitions.
    pub fn make_mi300x_in_cpx(address: &str, first_node: u32, first_minor: u32) -> Self {
        Self {
            partitions: 8,
            compute_units: 38,
            memory_bytes: [25_767_706_624, 2_147_483_648],
            ..Self::make_mi300x(address, first_node, first_minor)
        }
    }

    /// Returns the ID of a partition in the files of processes.
    pub fn gpu_id(&self, partition: u32) -> u32 {
        40_000 + self.first_node + partition
    }

    /// Returns the PCI bus, device and function as one number.
    fn pci_location(&self) -> u32 {
        let numbers = self.address.split([':', '.']);
        let numbers: Vec<_> = numbers
            .map(|number| u32::from_str_radix(number, 16).expect("a PCI address"))
            .collect();
        numbers[1] << 8 | numbers[2] << 3 | numbers[3]
    }
}

impl Tree {
    pub fn kfd(&self) -> std::path::PathBuf {
        self.sys().join("devices/virtual/kfd/kfd")
    }

    /// Adds the nodes of packages to the topology, and the node of the CPU.
    pub fn add_packages(&self, packages: &[Package]) {
        let root = self.kfd();
        tree::create_relative_link(&root, &self.sys().join("class/kfd/kfd"));
        let topology = root.join("topology");
        tree::write_file(&topology.join("generation_id"), "1\n");
        let cpu = topology.join("nodes/0");
        tree::write_file(&cpu.join("gpu_id"), "0\n");
        tree::write_file(
            &cpu.join("properties"),
            "cpu_cores_count 96\nsimd_count 0\n",
        );
        let partitions = packages
            .iter()
            .flat_map(|package| (0..package.partitions).map(move |number| (package, number)));
        for (package, number) in partitions {
            let node = topology.join(format!("nodes/{}", package.first_node + number));
            let properties = format!(
                "cpu_cores_count 0\nsimd_count {}\nsimd_per_cu 4\ngfx_target_version {}\n\
                 location_id {}\ndomain 0\ndrm_render_minor {}\nunique_id {}\nnum_xcc {}\n",
                package.compute_units * 4,
                package.target,
                package.pci_location() | number,
                package.first_minor + number,
                package.first_node,
                8 / package.partitions,
            );
            let [size, used] = package.memory_bytes;
            for (name, content) in [
                ("gpu_id", format!("{}\n", package.gpu_id(number))),
                ("name", "ip discovery\n".to_owned()),
                ("properties", properties),
                (
                    "mem_banks/0/properties",
                    format!("heap_type 1\nsize_in_bytes {size}\nflags 0\nwidth 8192\n"),
                ),
                ("mem_banks/0/used_memory", format!("{used}\n")),
            ] {
                tree::write_file(&node.join(name), content);
            }
        }
    }

    /// Adds the usage of a node by a process: the memory, and the number of occupied compute units.
    /// Only some GPUs count occupied units.
    pub fn add_compute_usage(&self, pid: u32, gpu_id: u32, vram_bytes: u64, occupied: Option<u32>) {
        let process = self.kfd().join(format!("proc/{pid}"));
        tree::write_file(
            &process.join(format!("vram_{gpu_id}")),
            format!("{vram_bytes}\n"),
        );
        tree::write_file(
            &process.join(format!("queues/{gpu_id}/gpuid")),
            format!("{gpu_id}\n"),
        );
        if let Some(occupied) = occupied {
            let file = format!("stats_{gpu_id}/cu_occupancy");
            tree::write_file(&process.join(file), format!("{occupied}\n"));
        }
    }
}
