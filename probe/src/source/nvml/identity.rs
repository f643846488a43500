//! What never changes about a GPU: which call gives which part.

use std::path::Path;

use nvml_wrapper::{
    Device,
    enum_wrappers::device::{Clock, TemperatureThreshold},
    error::NvmlError,
};

use super::ask::Asker;
use crate::{
    bounded,
    model::{Absence, Board, Gpu, MaxClocks, PowerLimits, Reading, Thresholds},
};

/// Who it is. The board is left for later.
pub(super) fn read(device: &Device<'_>, index: u32, asker: &mut Asker) -> Gpu {
    Gpu {
        index,
        uuid: asker.ask("UUID", || device.uuid()).value().cloned(),
        name: asker.ask("name", || device.name()),
        pci_bus_id: asker.ask("PCI bus id", || device.pci_info()).map(|pci| pci.bus_id),
        board: Board::absent(&Absence::NoAnswer),
        mig_devices: Vec::new(),
    }
}

/// Takes some milliseconds, for which a single look has no use: the highest clocks alone cost 1.2 ms each.
pub(super) fn board(device: &Device<'_>, bus_id: Option<&String>, asker: &mut Asker) -> Board {
    Board {
        serial: asker.ask("serial", || device.serial()),
        part_number: asker.ask("part number", || device.board_part_number()),
        vbios_version: asker.ask("VBIOS version", || device.vbios_version()),
        architecture: asker.ask("architecture", || device.architecture()).map(|architecture| architecture.to_string()),
        compute_capability: asker
            .ask("compute capability", || device.cuda_compute_capability())
            .map(|version| format!("{}.{}", version.major, version.minor)),
        cores: asker.ask("cores", || device.num_cores()),
        memory_bus_bits: asker.ask("memory bus width", || device.memory_bus_width()),
        minor_number: asker.ask("minor number", || device.minor_number()),
        numa_node: numa_node(device, bus_id, asker),
        pcie_max_generation: asker.ask("PCIe maximum generation", || device.max_pcie_link_gen()),
        pcie_max_width: asker.ask("PCIe maximum width", || device.max_pcie_link_width()),
        max_clocks: MaxClocks {
            graphics_mhz: asker.ask("maximum graphics clock", || device.max_clock_info(Clock::Graphics)),
            sm_mhz: asker.ask("maximum SM clock", || device.max_clock_info(Clock::SM)),
            memory_mhz: asker.ask("maximum memory clock", || device.max_clock_info(Clock::Memory)),
            video_mhz: asker.ask("maximum video clock", || device.max_clock_info(Clock::Video)),
        },
        power_limits: power_limits(device, asker),
        thresholds: thresholds(device, asker),
    }
}

/// The driver tells it on machines where GPUs are NUMA nodes themselves; elsewhere the system does.
fn numa_node(device: &Device<'_>, bus_id: Option<&String>, asker: &mut Asker) -> Reading<u32> {
    let told = asker.ask("NUMA node", || device.numa_node_id());
    match (told, bus_id) {
        (Reading::Absent(Absence::NotSupported), Some(bus_id)) => {
            let node =
                bounded::text(sysfs(bus_id), bounded::VALUE).ok().and_then(|node| node.trim().parse::<i32>().ok());
            // -1 is a machine that has one node, or does not say.
            node.and_then(|node| u32::try_from(node).ok()).map_or(Reading::Absent(Absence::Unknown), Reading::Now)
        }
        (told, _) => told,
    }
}

/// NVML's domain has eight digits where the system's has four.
fn sysfs(bus_id: &str) -> std::path::PathBuf {
    let short = bus_id.strip_prefix("0000").unwrap_or(bus_id).to_ascii_lowercase();
    Path::new("/sys/bus/pci/devices").join(short).join("numa_node")
}

fn power_limits(device: &Device<'_>, asker: &mut Asker) -> PowerLimits {
    let watts = |milliwatts: u32| f64::from(milliwatts) / 1000.0;
    let between = asker.ask("power limit constraints", || device.power_management_limit_constraints());
    PowerLimits {
        default_watts: asker.ask("default power limit", || device.power_management_limit_default()).map(watts),
        min_watts: between.clone().map(|limits| watts(limits.min_limit)),
        max_watts: between.map(|limits| watts(limits.max_limit)),
    }
}

fn thresholds(device: &Device<'_>, asker: &mut Asker) -> Thresholds {
    let mut celsius = |what: &'static str, threshold: TemperatureThreshold| -> Reading<f64> {
        asker.ask(what, || -> Result<u32, NvmlError> { device.temperature_threshold(threshold) }).map(f64::from)
    };
    Thresholds {
        shutdown_celsius: celsius("shutdown temperature", TemperatureThreshold::Shutdown),
        slowdown_celsius: celsius("slowdown temperature", TemperatureThreshold::Slowdown),
        memory_max_celsius: celsius("maximum memory temperature", TemperatureThreshold::MemoryMax),
        gpu_max_celsius: celsius("maximum GPU temperature", TemperatureThreshold::GpuMax),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_system_writes_a_bus_id_shorter_than_nvml() {
        assert_eq!(sysfs("00000000:3B:00.0"), Path::new("/sys/bus/pci/devices/0000:3b:00.0/numa_node"));
        assert_eq!(sysfs("00010000:3B:00.0"), Path::new("/sys/bus/pci/devices/00010000:3b:00.0/numa_node"));
    }
}
