//! Where the GPU sits: its address on the PCI bus, what it can do for virtual machines there, and its PCIe link.

use gpumon_probe::vendor::nvml::query::Query as Q;

use super::super::cell::{Cell, enabled, hexadecimal, number, supported};
use super::super::common::{self, BUS_ID};
use super::super::field::{Section, field};
use super::super::row::Row;

/// The fields.
pub(super) const SECTIONS: &[Section<()>] = &[
    Section {
        title: None,
        fields: &[
            field("pci.bus_id", BUS_ID, common::bus_id).or("gpu_bus_id"),
            field("pci.domain", "The PCI domain, in hexadecimal.", |row| hexadecimal(row.ask(Q::PciInfo), 0, 4)),
            field("pci.bus", "The PCI bus, in hexadecimal.", |row| hexadecimal(row.ask(Q::PciInfo), 1, 2)),
            field("pci.device", "The PCI device, in hexadecimal.", |row| hexadecimal(row.ask(Q::PciInfo), 2, 2)),
            field("pci.baseClass", "The PCI class, in hexadecimal.", |row| hexadecimal(row.ask(Q::PciInfo), 5, 1)),
            field("pci.subClass", "The class within the PCI class, in hexadecimal.", |row| {
                hexadecimal(row.ask(Q::PciInfo), 6, 1)
            }),
            field("pci.device_id", "The kind of device and its vendor, in hexadecimal.", |row| {
                hexadecimal(row.ask(Q::PciInfo), 3, 8)
            }),
            field("pci.sub_device_id", "The kind of board and its vendor, in hexadecimal.", |row| {
                hexadecimal(row.ask(Q::PciInfo), 4, 8)
            }),
        ],
    },
    Section {
        title: Some(("vgpu_device_capability", "What the GPU can do for virtual GPUs.")),
        fields: &[
            field(
                "vgpu_device_capability.fractional_multiVgpu",
                "Whether a guest can have several virtual GPUs that are parts of this GPU.",
                vgpu::<0>,
            ),
            field(
                "vgpu_device_capability.heterogeneous_timeSlice_profile",
                "Whether virtual GPUs of different types can take turns on it.",
                vgpu::<1>,
            ),
            field(
                "vgpu_device_capability.heterogeneous_timeSlice_sizes",
                "Whether virtual GPUs with different amounts of memory can take turns on it.",
                vgpu::<2>,
            ),
            field(
                "vgpu_device_capability.homogeneous_placements",
                "Whether it tells where virtual GPUs with equal amounts of memory are placed.",
                vgpu::<9>,
            ),
            field(
                "vgpu_device_capability.mig_timeSlicing",
                "Whether virtual GPUs can take turns on a MIG device.",
                vgpu::<10>,
            ),
            field(
                "vgpu_device_capability.mig_timeSlicing_mode",
                "Whether taking turns on MIG devices is turned on.",
                |row| enabled(row.ask(Q::VgpuCapability(11)), 0),
            ),
        ],
    },
    Section {
        title: None,
        fields: &[
            field(
                "pcie.link.gen.current",
                "The generation at which the PCIe link runs now, which can be lower while the GPU has nothing \
                 to do. An older name of pcie.link.gen.gpucurrent.",
                |row| number(row.ask(Q::PcieGeneration), 0),
            ),
            field(
                "pcie.link.gen.gpucurrent",
                "The generation at which the PCIe link runs now, which can be lower while the GPU has nothing \
                 to do.",
                |row| number(row.ask(Q::PcieGeneration), 0),
            ),
            field("pcie.link.gen.max", "The highest generation that the GPU and the machine have in common.", |row| {
                number(row.ask(Q::MaxPcieGeneration), 0)
            }),
            field("pcie.link.gen.gpumax", "The highest generation that the GPU itself can do.", |row| {
                number(row.ask(Q::GpuMaxPcieGeneration), 0)
            }),
            field("pcie.link.gen.hostmax", "The highest generation that the port above the GPU can do.", |row| {
                number(row.ask(Q::HostMaxPcieGeneration), 0)
            }),
            field(
                "pcie.link.width.current",
                "How many lanes the PCIe link uses now, which can be fewer while the GPU has nothing to do.",
                |row| number(row.ask(Q::PcieWidth), 0),
            ),
            field(
                "pcie.link.width.max",
                "The largest number of lanes that the GPU and the machine have in common.",
                |row| number(row.ask(Q::MaxPcieWidth), 0),
            ),
        ],
    },
];

/// One `nvmlDeviceVgpuCapability_t`.
fn vgpu<const CAPABILITY: u32>(row: &Row<'_, ()>) -> Cell {
    supported(row.ask(Q::VgpuCapability(CAPABILITY)), 0)
}
