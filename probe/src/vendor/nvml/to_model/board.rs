//! Conversion of a GPU's constant data.

use std::path::Path;

use nvml_wrapper::enums::device::DeviceArchitecture;

use super::{
    super::cached::{TimedAnswers, and_then},
    read_u32, read_watts,
};
use crate::{
    bounded,
    model::{Absence, Board, Gpu, MaxClocks, PowerLimits, Reading, Thresholds, sysfs_device_path},
    vendor::nvml::query::Query as Q,
};

/// Returns a GPU's identity. The board information is added later.
pub(in super::super) fn make_identity(answers: TimedAnswers<'_>, index: u32) -> Gpu {
    Gpu {
        vendor_index: Some(index),
        uuid: answers.read_text(Q::Uuid).value().cloned(),
        name: answers.read_text(Q::Name),
        pci_bus_id: answers.read_text(Q::BusId),
        ..Gpu::new_unidentified(index, &Absence::NoAnswer)
    }
}

/// Returns the GPU's board information. If the driver does not know the NUMA node, it is read from
/// `sys_root`, which is `/sys` except in tests.
pub(in super::super) fn make_board(answers: TimedAnswers<'_>, sys_root: &Path) -> Board {
    let between = answers.read_numbers::<2>(Q::PowerLimitConstraints);
    let limit = |milliwatts: i128| milliwatts as f64 / 1000.0;
    let celsius = |threshold| {
        answers
            .read_number(Q::TemperatureThreshold(threshold))
            .map(|celsius| celsius as f64)
    };
    Board {
        serial: answers.read_text(Q::Serial),
        part_number: answers.read_text(Q::BoardPartNumber),
        vbios_version: answers.read_text(Q::VbiosVersion),
        architecture: and_then(answers.read_integer(Q::Architecture), |number: u32| {
            DeviceArchitecture::try_from(number)
                .map_or(Reading::Absent(Absence::Unknown), |architecture| {
                    Reading::Now(architecture.to_string())
                })
        }),
        compute_capability: answers
            .read_numbers(Q::ComputeCapability)
            .map(|[major, minor]| format!("{major}.{minor}")),
        cores: read_u32(answers, Q::NumGpuCores),
        memory_bus_bits: read_u32(answers, Q::MemoryBusWidth),
        minor_number: read_u32(answers, Q::MinorNumber),
        numa_node: numa_node(answers, sys_root),
        pcie_max_generation: read_u32(answers, Q::MaxPcieGeneration),
        pcie_max_width: read_u32(answers, Q::MaxPcieWidth),
        max_clocks: MaxClocks {
            graphics_mhz: read_u32(answers, Q::MaxClock(0)),
            sm_mhz: read_u32(answers, Q::MaxClock(1)),
            memory_mhz: read_u32(answers, Q::MaxClock(2)),
            video_mhz: read_u32(answers, Q::MaxClock(3)),
        },
        power_limits: PowerLimits {
            default_watts: read_watts(answers, Q::DefaultPowerLimit),
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

/// Returns the NUMA node near the GPU. The driver knows it only on machines where GPUs are NUMA
/// nodes themselves. On other machines, it is read from sysfs.
fn numa_node(answers: TimedAnswers<'_>, sys_root: &Path) -> Reading<u32> {
    match (
        read_u32(answers, Q::NumaNode),
        answers.read_text(Q::BusId).value(),
    ) {
        (Reading::Absent(Absence::NotSupported), Some(bus_id)) => {
            let node = bounded::read_text(
                sysfs_device_path(sys_root, bus_id).join("numa_node"),
                bounded::VALUE_LIMIT,
            )
            .ok();
            let node = node.and_then(|node| node.trim().parse::<i32>().ok());
            // The value -1 means that the machine has only one node or does not report the node.
            node.and_then(|node| u32::try_from(node).ok())
                .map_or(Reading::Absent(Absence::Unknown), Reading::Now)
        }
        (reported, _) => reported,
    }
}
