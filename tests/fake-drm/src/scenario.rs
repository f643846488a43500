//! Scenarios of whole machines, by name.

use crate::{Client, Process, Tree, kfd::Package, products};

/// A machine: its name, its description, and a function that adds its GPUs to a tree.
pub struct Scenario {
    pub name: &'static str,
    /// A description of a few words.
    pub description: &'static str,
    /// The function that adds the GPUs and processes.
    pub build: fn(&Tree),
}

pub const SCENARIOS: [Scenario; 5] = [
    Scenario {
        name: "mi300x",
        description: "eight MI300X with four programs each",
        build: add_mi300x_node,
    },
    Scenario {
        name: "mi300x-cpx",
        description: "two MI300X, each divided into eight partitions, and four programs",
        build: add_mi300x_in_cpx,
    },
    Scenario {
        name: "laptop",
        description: "a laptop with an APU, and a Radeon that sleeps",
        build: add_laptop,
    },
    Scenario {
        name: "apu",
        description: "a Ryzen AI Max, whose GPU shares the machine's memory",
        build: add_apu,
    },
    Scenario {
        name: "mixed",
        description: "an MI300X, an Arc B580 and the graphics part of a Core processor",
        build: |tree| drop(add_gpus_of_several_vendors(tree)),
    },
];

const GIB: u64 = 1 << 30;

/// Adds eight MI300X with four programs each.
pub fn add_mi300x_node(tree: &Tree) {
    let packages: Vec<_> = (0..8)
        .map(|number| {
            let address = format!("0000:{:02x}:00.0", 0x05 + 0x10 * number);
            tree.add_card(number, &products::make_mi300x(&address));
            Package::make_mi300x(&address, 1 + number, 128 + number)
        })
        .collect();
    tree.add_packages(&packages);
    tree.set_memory(2048 * GIB, 1800 * GIB);
    for (number, package) in (0..).zip(&packages) {
        for pid in (0..4).map(|program| 5000 + 10 * number + program) {
            let client = Client::new("amdgpu", &package.address, u64::from(pid));
            let client = client.with_memory("vram", 24 * GIB);
            let minor = package.first_minor;
            tree.add_process(&Process::new(pid, "python3").with_open_card(minor, &client));
            tree.add_compute_usage(pid, package.gpu_id(0), 24 * GIB, Some(70));
        }
    }
}

/// Adds two MI300X in CPX mode, and programs on some of their partitions.
pub fn add_mi300x_in_cpx(tree: &Tree) {
    let addresses = ["0000:05:00.0", "0000:26:00.0"];
    let packages: Vec<_> = (0..)
        .zip(addresses)
        .map(|(number, address)| {
            Package::make_mi300x_in_cpx(address, 1 + 8 * number, 128 + 8 * number)
        })
        .collect();
    for (number, address) in (0..).zip(addresses) {
        // The first partition has the same minor number as the package itself.
        tree.add_card(8 * number, &products::make_mi300x_in_cpx(address));
    }
    tree.add_packages(&packages);
    tree.set_memory(1024 * GIB, 900 * GIB);
    for (pid, package, partition, gibibytes) in [
        (4100, 0, 0, 12),
        (4101, 0, 2, 6),
        (4102, 0, 5, 20),
        (4200, 1, 0, 3),
    ] {
        let package: &Package = &packages[package];
        let client = Client::new("amdgpu", &package.address, u64::from(pid));
        let client = client.with_memory("vram", gibibytes * GIB);
        let minor = package.first_minor + partition;
        tree.add_process(&Process::new(pid, "python3").with_open_card(minor, &client));
        let gpu_id = package.gpu_id(partition);
        tree.add_compute_usage(pid, gpu_id, gibibytes * GIB, Some(30));
    }
}

/// Adds an APU that displays the desktop, and a suspended Radeon.
pub fn add_laptop(tree: &Tree) {
    let radeon = tree.add_card(1, &products::make_radeon("0000:03:00.0"));
    radeon.suspend_card();
    let apu = products::make_phoenix("0000:c4:00.0");
    tree.add_card(0, &apu);
    tree.set_memory(32 * GIB, 21 * GIB);
    let client = Client::new("amdgpu", apu.address(), 7)
        .with_memory("vram", GIB / 2)
        .with_memory("gtt", GIB / 8)
        .with_engine("gfx", 95_000_000_000);
    tree.add_process(&Process::new(1800, "gnome-shell").with_open_card(128, &client));
}

/// Adds an APU with a program that uses much of the machine's memory.
pub fn add_apu(tree: &Tree) {
    let apu = products::make_strix_halo("0000:c5:00.0");
    tree.add_card(0, &apu);
    tree.set_memory(128 * GIB, 80 * GIB);
    let client = Client::new("amdgpu", apu.address(), 3)
        .with_memory("vram", GIB / 4)
        .with_memory("gtt", 30 * GIB)
        .with_engine("compute", 60_000_000_000);
    tree.add_process(&Process::new(2300, "llama-server").with_open_card(128, &client));
}

/// Adds an MI300X and Intel GPUs, and returns the package of the MI300X. Tests add NVIDIA GPUs with
/// the fake NVML library.
pub fn add_gpus_of_several_vendors(tree: &Tree) -> Package {
    let address = "0000:83:00.0";
    let package = Package::make_mi300x(address, 2, 129);
    tree.add_card(1, &products::make_mi300x(address));
    tree.add_packages(std::slice::from_ref(&package));
    tree.add_card(2, &products::make_arc_b580("0000:84:00.0"));
    tree.add_card(0, &products::make_tiger_lake());
    tree.set_memory(256 * GIB, 200 * GIB);
    package
}
