//! Fields for the GPU's PCI address, virtualization mode, and PCIe link.

use gpumon_probe::vendor::nvml::query::Query as Q;

use super::super::cell::{
    as_number, format_enabled, format_hexadecimal, format_supported, format_text,
};
use super::super::common::BUS_ID;
use super::super::field::{Section, field, fields, with_title};

pub(super) const PCI_SECTIONS: &[Section] = &[
    fields(&[
        field("pci.bus_id or gpu_bus_id", Q::BusId, format_text, BUS_ID),
        field(
            "pci.domain",
            Q::PciInfo,
            format_hexadecimal::<0, 4>,
            "The PCI domain number, in hexadecimal.",
        ),
        field(
            "pci.bus",
            Q::PciInfo,
            format_hexadecimal::<1, 2>,
            "The PCI bus number, in hexadecimal.",
        ),
        field(
            "pci.device",
            Q::PciInfo,
            format_hexadecimal::<2, 2>,
            "The PCI device number, in hexadecimal.",
        ),
        field(
            "pci.baseClass",
            Q::PciInfo,
            format_hexadecimal::<5, 1>,
            "The PCI base class, in hexadecimal.",
        ),
        field(
            "pci.subClass",
            Q::PciInfo,
            format_hexadecimal::<6, 1>,
            "The PCI subclass, in hexadecimal.",
        ),
        field(
            "pci.device_id",
            Q::PciInfo,
            format_hexadecimal::<3, 8>,
            "The PCI device ID and vendor ID, in hexadecimal.",
        ),
        field(
            "pci.sub_device_id",
            Q::PciInfo,
            format_hexadecimal::<4, 8>,
            "The PCI device ID and vendor ID of the board (subsystem), in hexadecimal.",
        ),
    ]),
    with_title(
        "vgpu_device_capability",
        "Capabilities of the GPU for virtual GPUs.",
        &[
            field(
                "vgpu_device_capability.fractional_multiVgpu",
                Q::VgpuCapability(0),
                format_supported::<0>,
                "Whether a guest can have several virtual GPUs that are fractions of this GPU.",
            ),
            field(
                "vgpu_device_capability.heterogeneous_timeSlice_profile",
                Q::VgpuCapability(1),
                format_supported::<0>,
                "Whether virtual GPUs of different types can share the GPU by time slicing.",
            ),
            field(
                "vgpu_device_capability.heterogeneous_timeSlice_sizes",
                Q::VgpuCapability(2),
                format_supported::<0>,
                "Whether virtual GPUs with different amounts of memory can share the GPU by time \
                 slicing.",
            ),
            field(
                "vgpu_device_capability.homogeneous_placements",
                Q::VgpuCapability(9),
                format_supported::<0>,
                "Whether the GPU reports the possible placements of virtual GPUs with equal \
                 amounts of memory.",
            ),
            field(
                "vgpu_device_capability.mig_timeSlicing",
                Q::VgpuCapability(10),
                format_supported::<0>,
                "Whether virtual GPUs can share a MIG device by time slicing.",
            ),
            field(
                "vgpu_device_capability.mig_timeSlicing_mode",
                Q::VgpuCapability(11),
                format_enabled::<0>,
                "Whether time slicing of MIG devices is enabled.",
            ),
        ],
    ),
    fields(&[
        field(
            "pcie.link.gen.current",
            Q::PcieGeneration,
            as_number::<0>,
            "The current generation of the PCIe link, which can be lower while the GPU is idle. \
             An older name of pcie.link.gen.gpucurrent.",
        ),
        field(
            "pcie.link.gen.gpucurrent",
            Q::PcieGeneration,
            as_number::<0>,
            "The current generation of the PCIe link, which can be lower while the GPU is idle.",
        ),
        field(
            "pcie.link.gen.max",
            Q::MaxPcieGeneration,
            as_number::<0>,
            "The highest PCIe generation that both the GPU and the machine support.",
        ),
        field(
            "pcie.link.gen.gpumax",
            Q::GpuMaxPcieGeneration,
            as_number::<0>,
            "The highest PCIe generation that the GPU supports.",
        ),
        field(
            "pcie.link.gen.hostmax",
            Q::HostMaxPcieGeneration,
            as_number::<0>,
            "The highest PCIe generation that the upstream port of the GPU supports.",
        ),
        field(
            "pcie.link.width.current",
            Q::PcieWidth,
            as_number::<0>,
            "The current number of lanes of the PCIe link, which can be lower while the GPU is \
             idle.",
        ),
        field(
            "pcie.link.width.max",
            Q::MaxPcieWidth,
            as_number::<0>,
            "The largest number of PCIe lanes that both the GPU and the machine support.",
        ),
    ]),
];
