//! Where the GPU sits: its address on the PCI bus, what it can do for virtual machines there, and its PCIe link.

use gpumon_probe::vendor::nvml::query::Query as Q;

use super::super::cell::{Cell, enabled, hexadecimal, number, supported};
use super::super::common::{self, BUS_ID};
use super::super::field::{Section, field, titled, untitled};
use super::super::row::Row;

pub(super) const SECTIONS: &[Section<()>] = &[
    untitled(&[
        field("pci.bus_id or gpu_bus_id", common::bus_id).about(BUS_ID),
        field("pci.domain", |row| hexadecimal(row.ask(Q::PciInfo), 0, 4)).about("The PCI domain, in hexadecimal."),
        field("pci.bus", |row| hexadecimal(row.ask(Q::PciInfo), 1, 2)).about("The PCI bus, in hexadecimal."),
        field("pci.device", |row| hexadecimal(row.ask(Q::PciInfo), 2, 2)).about("The PCI device, in hexadecimal."),
        field("pci.baseClass", |row| hexadecimal(row.ask(Q::PciInfo), 5, 1)).about("The PCI class, in hexadecimal."),
        field("pci.subClass", |row| hexadecimal(row.ask(Q::PciInfo), 6, 1))
            .about("The class within the PCI class, in hexadecimal."),
        field("pci.device_id", |row| hexadecimal(row.ask(Q::PciInfo), 3, 8))
            .about("The kind of device and its vendor, in hexadecimal."),
        field("pci.sub_device_id", |row| hexadecimal(row.ask(Q::PciInfo), 4, 8))
            .about("The kind of board and its vendor, in hexadecimal."),
    ]),
    titled(
        "vgpu_device_capability",
        "What the GPU can do for virtual GPUs.",
        &[
            field("vgpu_device_capability.fractional_multiVgpu", vgpu::<0>)
                .about("Whether a guest can have several virtual GPUs that are parts of this GPU."),
            field("vgpu_device_capability.heterogeneous_timeSlice_profile", vgpu::<1>)
                .about("Whether virtual GPUs of different types can take turns on it."),
            field("vgpu_device_capability.heterogeneous_timeSlice_sizes", vgpu::<2>)
                .about("Whether virtual GPUs with different amounts of memory can take turns on it."),
            field("vgpu_device_capability.homogeneous_placements", vgpu::<9>)
                .about("Whether it tells where virtual GPUs with equal amounts of memory are placed."),
            field("vgpu_device_capability.mig_timeSlicing", vgpu::<10>)
                .about("Whether virtual GPUs can take turns on a MIG device."),
            field("vgpu_device_capability.mig_timeSlicing_mode", |row| enabled(row.ask(Q::VgpuCapability(11)), 0))
                .about("Whether taking turns on MIG devices is turned on."),
        ],
    ),
    untitled(&[
        field("pcie.link.gen.current", |row| number(row.ask(Q::PcieGeneration), 0)).about(
            "The generation at which the PCIe link runs now, which can be lower while the GPU has nothing to do. An \
             older name of pcie.link.gen.gpucurrent.",
        ),
        field("pcie.link.gen.gpucurrent", |row| number(row.ask(Q::PcieGeneration), 0)).about(
            "The generation at which the PCIe link runs now, which can be lower while the GPU has nothing to do.",
        ),
        field("pcie.link.gen.max", |row| number(row.ask(Q::MaxPcieGeneration), 0))
            .about("The highest generation that the GPU and the machine have in common."),
        field("pcie.link.gen.gpumax", |row| number(row.ask(Q::GpuMaxPcieGeneration), 0))
            .about("The highest generation that the GPU itself can do."),
        field("pcie.link.gen.hostmax", |row| number(row.ask(Q::HostMaxPcieGeneration), 0))
            .about("The highest generation that the port above the GPU can do."),
        field("pcie.link.width.current", |row| number(row.ask(Q::PcieWidth), 0))
            .about("How many lanes the PCIe link uses now, which can be fewer while the GPU has nothing to do."),
        field("pcie.link.width.max", |row| number(row.ask(Q::MaxPcieWidth), 0))
            .about("The largest number of lanes that the GPU and the machine have in common."),
    ]),
];

/// One `nvmlDeviceVgpuCapability_t`.
fn vgpu<const CAPABILITY: u32>(row: &Row<'_, ()>) -> Cell {
    supported(row.ask(Q::VgpuCapability(CAPABILITY)), 0)
}
