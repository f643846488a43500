//! Fields for the GPU's PCI address, its virtualization mode and its PCIe link.

use gpumon_probe::vendor::nvml::query::Query as Q;

use super::super::cell::{as_enabled, as_number, hexadecimal, supported, text};
use super::super::common::BUS_ID;
use super::super::field::{Section, field, fields, with_title};

pub(super) const SECTIONS: &[Section] = &[
    fields(&[
        field("pci.bus_id or gpu_bus_id", Q::BusId, text, BUS_ID),
        field(
            "pci.domain",
            Q::PciInfo,
            hexadecimal::<0, 4>,
            "The PCI domain, in hexadecimal.",
        ),
        field(
            "pci.bus",
            Q::PciInfo,
            hexadecimal::<1, 2>,
            "The PCI bus, in hexadecimal.",
        ),
        field(
            "pci.device",
            Q::PciInfo,
            hexadecimal::<2, 2>,
            "The PCI device, in hexadecimal.",
        ),
        field(
            "pci.baseClass",
            Q::PciInfo,
            hexadecimal::<5, 1>,
            "The PCI class, in hexadecimal.",
        ),
        field(
            "pci.subClass",
            Q::PciInfo,
            hexadecimal::<6, 1>,
            "The class within the PCI class, in hexadecimal.",
        ),
        field(
            "pci.device_id",
            Q::PciInfo,
            hexadecimal::<3, 8>,
            "The kind of device and its vendor, in hexadecimal.",
        ),
        field(
            "pci.sub_device_id",
            Q::PciInfo,
            hexadecimal::<4, 8>,
            "The kind of board and its vendor, in hexadecimal.",
        ),
    ]),
    with_title(
        "vgpu_device_capability",
        "What the GPU can do for virtual GPUs.",
        &[
            field(
                "vgpu_device_capability.fractional_multiVgpu",
                Q::VgpuCapability(0),
                supported::<0>,
                "Whether a guest can have several virtual GPUs that are parts of this GPU.",
            ),
            field(
                "vgpu_device_capability.heterogeneous_timeSlice_profile",
                Q::VgpuCapability(1),
                supported::<0>,
                "Whether virtual GPUs of different types can take turns on it.",
            ),
            field(
                "vgpu_device_capability.heterogeneous_timeSlice_sizes",
                Q::VgpuCapability(2),
                supported::<0>,
                "Whether virtual GPUs with different amounts of memory can take turns on it.",
            ),
            field(
                "vgpu_device_capability.homogeneous_placements",
                Q::VgpuCapability(9),
                supported::<0>,
                "Whether it tells where virtual GPUs with equal amounts of memory are placed.",
            ),
            field(
                "vgpu_device_capability.mig_timeSlicing",
                Q::VgpuCapability(10),
                supported::<0>,
                "Whether virtual GPUs can take turns on a MIG device.",
            ),
            field(
                "vgpu_device_capability.mig_timeSlicing_mode",
                Q::VgpuCapability(11),
                as_enabled::<0>,
                "Whether taking turns on MIG devices is turned on.",
            ),
        ],
    ),
    fields(&[
        field(
            "pcie.link.gen.current",
            Q::PcieGeneration,
            as_number::<0>,
            "The generation at which the PCIe link runs now, which can be lower while the \
             GPU has nothing to do. An older name of pcie.link.gen.gpucurrent.",
        ),
        field(
            "pcie.link.gen.gpucurrent",
            Q::PcieGeneration,
            as_number::<0>,
            "The generation at which the PCIe link runs now, which can be lower while the \
             GPU has nothing to do.",
        ),
        field(
            "pcie.link.gen.max",
            Q::MaxPcieGeneration,
            as_number::<0>,
            "The highest generation that the GPU and the machine have in common.",
        ),
        field(
            "pcie.link.gen.gpumax",
            Q::GpuMaxPcieGeneration,
            as_number::<0>,
            "The highest generation that the GPU itself can do.",
        ),
        field(
            "pcie.link.gen.hostmax",
            Q::HostMaxPcieGeneration,
            as_number::<0>,
            "The highest generation that the port above the GPU can do.",
        ),
        field(
            "pcie.link.width.current",
            Q::PcieWidth,
            as_number::<0>,
            "How many lanes the PCIe link uses now, which can be fewer while the GPU has \
             nothing to do.",
        ),
        field(
            "pcie.link.width.max",
            Q::MaxPcieWidth,
            as_number::<0>,
            "The largest number of lanes that the GPU and the machine have in common.",
        ),
    ]),
];
