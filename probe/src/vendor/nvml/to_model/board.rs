//! The constant data of a GPU.

use std::path::Path;

use nvml_wrapper::enums::device::DeviceArchitecture;

use super::{
    super::cached::{Answers, and_then},
    small, watts,
};
use crate::{
    bounded,
    model::{Absence, Board, Gpu, MaxClocks, PowerLimits, Reading, Thresholds, sysfs_device},
    vendor::nvml::query::Query as Q,
};

/// Returns the identity of a GPU. Its board is read later.
pub(in super::super) fn identity(answers: Answers<'_>, index: u32) -> Gpu {
    Gpu {
        vendor_index: Some(index),
        uuid: answers.text(Q::Uuid).value().cloned(),
        name: answers.text(Q::Name),
        pci_bus_id: answers.text(Q::BusId),
        ..Gpu::unidentified(index, &Absence::NoAnswer)
    }
}

/// Returns the board. `sys_root` is `/sys`, from which the NUMA node is read if the driver does not
/// know it.
pub(in super::super) fn board(answers: Answers<'_>, sys_root: &Path) -> Board {
    let between = answers.numbers::<2>(Q::PowerLimitConstraints);
    let limit = |milliwatts: i128| milliwatts as f64 / 1000.0;
    let celsius = |threshold| {
        answers
            .number(Q::TemperatureThreshold(threshold))
            .map(|celsius| celsius as f64)
    };
    Board {
        serial: answers.text(Q::Serial),
        part_number: answers.text(Q::BoardPartNumber),
        vbios_version: answers.text(Q::VbiosVersion),
        architecture: and_then(answers.whole(Q::Architecture), |number: u32| {
            DeviceArchitecture::try_from(number)
                .map_or(Reading::Absent(Absence::Unknown), |architecture| {
                    Reading::Now(architecture.to_string())
                })
        }),
        compute_capability: answers
            .numbers(Q::ComputeCapability)
            .map(|[major, minor]| format!("{major}.{minor}")),
        cores: small(answers, Q::NumGpuCores),
        memory_bus_bits: small(answers, Q::MemoryBusWidth),
        minor_number: small(answers, Q::MinorNumber),
        numa_node: numa_node(answers, sys_root),
        pcie_max_generation: small(answers, Q::MaxPcieGeneration),
        pcie_max_width: small(answers, Q::MaxPcieWidth),
        max_clocks: MaxClocks {
            graphics_mhz: small(answers, Q::MaxClock(0)),
            sm_mhz: small(answers, Q::MaxClock(1)),
            memory_mhz: small(answers, Q::MaxClock(2)),
            video_mhz: small(answers, Q::MaxClock(3)),
        },
        power_limits: PowerLimits {
            default_watts: watts(answers, Q::DefaultPowerLimit),
            min_watts: between.clone().map(|[least, _]| limit(least)),
            max_watts: between.map(|[_, most]| limit(most)),
        },
        thresholds: Thresholds {
            shutdown_celsius: celsius(0),
            slowdown_celsius: celsius(1),
            memory_max_celsius: celsius(2),
            gpu_max_celsius: celsius(3),
        },
        energy_source: None,
    }
}

/// Returns the NUMA node. The driver only knows it on machines where GPUs are NUMA nodes
/// themselves. On others, it is read from the system.
fn numa_node(answers: Answers<'_>, sys_root: &Path) -> Reading<u32> {
    match (small(answers, Q::NumaNode), answers.text(Q::BusId).value()) {
        (Reading::Absent(Absence::NotSupported), Some(bus_id)) => {
            let node = bounded::text(
                sysfs_device(sys_root, bus_id).join("numa_node"),
                bounded::VALUE,
            )
            .ok();
            let node = node.and_then(|node| node.trim().parse::<i32>().ok());
            // -1 means that the machine has one node or does not report it.
            node.and_then(|node| u32::try_from(node).ok())
                .map_or(Reading::Absent(Absence::Unknown), Reading::Now)
        }
        (told, _) => told,
    }
}
