//! Fields for the GPU's PCI address and PCIe link, its vGPU capabilities, and its state in an
//! NVLink fabric.

use gpumon_probe::vendor::nvml::query::{Code, Query as Q};

use crate::{
    formats::format_uuid,
    query::{
        cell::{
            Absent, Cell, format_enabled, format_hexadecimal, format_supported, format_text,
            read_number,
        },
        table::{BUS_ID_HELP, Row, Section, field, fields, number_field, row_field, with_title},
    },
    release,
};

pub(super) const PCI_SECTIONS: &[Section] = &[
    fields(&[
        field(
            "pci.bus_id or gpu_bus_id",
            Q::BusId,
            format_text,
            BUS_ID_HELP,
        ),
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
        number_field(
            "pcie.link.gen.current",
            Q::PcieGeneration,
            "The current generation of the PCIe link, which can be lower while the GPU is idle. \
             An older name of pcie.link.gen.gpucurrent.",
        ),
        number_field(
            "pcie.link.gen.gpucurrent",
            Q::PcieGeneration,
            "The current generation of the PCIe link, which can be lower while the GPU is idle.",
        ),
        number_field(
            "pcie.link.gen.max",
            Q::MaxPcieGeneration,
            "The highest PCIe generation that both the GPU and the machine support.",
        ),
        number_field(
            "pcie.link.gen.gpumax",
            Q::GpuMaxPcieGeneration,
            "The highest PCIe generation that the GPU supports.",
        ),
        number_field(
            "pcie.link.gen.hostmax",
            Q::HostMaxPcieGeneration,
            "The highest PCIe generation that the upstream port of the GPU supports.",
        ),
        number_field(
            "pcie.link.width.current",
            Q::PcieWidth,
            "The current number of lanes of the PCIe link, which can be lower while the GPU is \
             idle.",
        ),
        number_field(
            "pcie.link.width.max",
            Q::MaxPcieWidth,
            "The largest number of PCIe lanes that both the GPU and the machine support.",
        ),
    ]),
];

// The GPU's state in an NVLink fabric (`nvmlGpuFabricState_t`).
const FABRIC_NOT_STARTED: i128 = 1;
const FABRIC_IN_PROGRESS: i128 = 2;
const FABRIC_COMPLETED: i128 = 3;

/// The words for a two-bit condition in `NVML_GPU_FABRIC_HEALTH_MASK_*`: 1 is true and 2 is false.
/// 0 means unknown and has no word.
const CONDITION_WORDS: [&str; 2] = ["True", "False"];

/// The words for `NVML_GPU_FABRIC_HEALTH_MASK_INCORRECT_CONFIGURATION_*`, starting with value 1.
const CONFIGURATION_WORDS: [&str; 8] = [
    "None",
    "Incorrect SystemGuid",
    "Incorrect Chassis Serial Number",
    "No Partition",
    "Insufficient Nvlink Resources",
    "Incompatible GPU Firmware",
    "Invalid Location",
    "GPU State Invalid",
];

pub(super) const FABRIC_SECTIONS: &[Section] = &[fields(&[
    row_field(
        "fabric.state",
        format_fabric_state,
        "The progress of the GPU in joining the fabric.",
    ),
    row_field(
        "fabric.status",
        format_join_status,
        "The result of joining the fabric. It is available once the state is Completed.",
    ),
    row_field(
        "fabric.cliqueId",
        |row| Ok(read_joined_number(row, 2)?.to_string()),
        "The number of the GPU's clique. The GPUs of a clique can reach each other through NVLink.",
    ),
    row_field(
        "fabric.clusterUuid",
        format_cluster_uuid,
        "The UUID of the GPU's cluster.",
    ),
    row_field(
        "fabric.health.summary",
        format_health_summary,
        "A summary of the GPU's health in the fabric.",
    ),
    row_field(
        "fabric.health.bandwidth",
        |row| format_health(row, 0, 0x3, &["Degraded", "Full"]),
        "Whether the GPU has its full bandwidth in the fabric.",
    ),
    row_field(
        "fabric.health.route_recovery_in_progress",
        |row| format_health(row, 2, 0x3, &CONDITION_WORDS),
        "Whether the recovery of a route is in progress.",
    ),
    row_field(
        "fabric.health.route_unhealthy",
        |row| format_health(row, 4, 0x3, &CONDITION_WORDS),
        "Whether the recovery of a route has failed.",
    ),
    row_field(
        "fabric.health.access_timeout_recovery",
        |row| format_health(row, 6, 0x3, &CONDITION_WORDS),
        "Whether recovery from an access timeout is in progress.",
    ),
    row_field(
        "fabric.health.incorrect_configuration",
        |row| format_health(row, 8, 0xF, &CONFIGURATION_WORDS),
        "The error in the configuration of the fabric.",
    ),
    row_field(
        "fabric.health.partition_assigned",
        |row| format_health(row, 12, 0x3, &CONDITION_WORDS),
        "Whether the GPU is assigned to a partition of the fabric.",
    )
    .except(release::BRANCH_590),
])];

/// Creates the word for a missing fabric reading: `N/A` without brackets. The word is the same if
/// there is no fabric and if the GPU has not joined the fabric.
fn make_absent_reading() -> Absent {
    Absent::new("N/A")
}

/// Returns a number from the answer to [`Q::FabricInfo`].
fn read_fabric_number(row: &Row<'_>, place: usize) -> Result<i128, Absent> {
    match row.run_query(Q::FabricInfo) {
        Err(Code::NOT_SUPPORTED) => Err(make_absent_reading()),
        answer => read_number(&answer, place),
    }
}

fn format_fabric_state(row: &Row<'_>) -> Cell {
    match read_fabric_number(row, 0)? {
        FABRIC_NOT_STARTED => Ok("Not Started".to_owned()),
        FABRIC_IN_PROGRESS => Ok("In Progress".to_owned()),
        FABRIC_COMPLETED => Ok("Completed".to_owned()),
        _ => Err(make_absent_reading()),
    }
}

/// Returns the `nvmlReturn_t` of the attempt to join the fabric.
fn read_join_outcome(row: &Row<'_>) -> Result<i128, Absent> {
    if read_fabric_number(row, 0)? == FABRIC_COMPLETED {
        read_fabric_number(row, 1)
    } else {
        Err(make_absent_reading())
    }
}

fn format_join_status(row: &Row<'_>) -> Cell {
    Ok(match read_join_outcome(row)? {
        0 => "Success",
        3 => "Not Supported",
        4 => "Insufficient Permissions",
        6 => "Not Found",
        7 => "Insufficient Size",
        10 => "Timeout",
        15 => "GPU is lost",
        16 => "GPU requires reset",
        19 => "In use by another client",
        20 => "Insufficient Memory",
        23 => "Insufficient Resources",
        _ => "Unknown Error",
    }
    .to_owned())
}

/// Returns a number that is available only after the GPU has joined the fabric.
fn read_joined_number(row: &Row<'_>, place: usize) -> Result<i128, Absent> {
    if read_join_outcome(row)? == 0 {
        read_fabric_number(row, place)
    } else {
        Err(make_absent_reading())
    }
}

fn format_cluster_uuid(row: &Row<'_>) -> Cell {
    let half = |place| read_joined_number(row, place);
    Ok(format_uuid(half(5)?, half(6)?))
}

/// Returns the word for `nvmlGpuFabricHealthSummary`. If the summary is 0 (unknown), all conditions
/// are unknown as well.
fn format_health_summary(row: &Row<'_>) -> Cell {
    find_word(
        read_fabric_number(row, 4)?,
        &["Healthy", "Unhealthy", "Limited Capacity"],
    )
}

fn format_health(row: &Row<'_>, shift: u32, width: i128, words: &[&str]) -> Cell {
    format_health_summary(row)?;
    find_word((read_fabric_number(row, 3)? >> shift) & width, words)
}

/// Returns the word for a number. The first word stands for 1.
fn find_word(number: i128, words: &[&str]) -> Cell {
    let place = usize::try_from(number - 1).map_err(|_| make_absent_reading())?;
    words
        .get(place)
        .map(|word| (*word).to_owned())
        .ok_or_else(make_absent_reading)
}
