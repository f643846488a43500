//! Fields for the time, the machine, the GPU's identity, and its position in a rack.

use gpumon_probe::{
    untrusted::to_printable,
    vendor::nvml::query::{Answer, Query as Q, SystemQuery},
};

use crate::{
    query::{
        cell::{Cell, format_number, format_supported, format_text, format_word, read_number},
        table::{
            self, NAME_HELP, SERIAL_HELP, Section, TIMESTAMP_HELP, UUID_HELP, field, fields,
            number_field, row_field, with_title,
        },
    },
    release::Release,
};

pub(super) const IDENTITY_SECTIONS: &[Section] = &[
    fields(&[
        row_field("timestamp", table::format_timestamp, TIMESTAMP_HELP),
        row_field(
            "driver_version",
            |row| format_text(&row.run_system_query(SystemQuery::DriverVersion)),
            "The version of the installed driver (alphanumeric).",
        ),
        row_field(
            "kmd_version",
            |row| format_text(&row.run_system_query(SystemQuery::DriverVersion)),
            "The version of the installed kernel-mode driver (alphanumeric).",
        )
        .since(Release(595, 0)),
    ]),
    with_title(
        "vgpu_driver_capability",
        "Capabilities of the driver for virtual GPUs.",
        &[row_field(
            "vgpu_driver_capability.heterogenous_multivGPU",
            |row| {
                format_supported::<0>(&row.run_system_query(SystemQuery::VgpuDriverCapability(0)))
            },
            "Whether a guest can have several virtual GPUs of different types.",
        )],
    ),
    fields(&[
        row_field(
            "count",
            |row| Ok(row.gpu.context.count.to_string()),
            "The number of NVIDIA GPUs in the machine.",
        ),
        field("name or gpu_name", Q::Name, format_text, NAME_HELP),
        field("serial or gpu_serial", Q::Serial, format_text, SERIAL_HELP),
        field("uuid or gpu_uuid", Q::Uuid, format_text, UUID_HELP),
    ]),
];

pub(super) const PLATFORM_SECTIONS: &[Section] = &[
    with_title(
        "platform",
        "The location of the GPU in its rack.",
        &[
            field(
                "platform.chassis_serial_number",
                Q::PlatformInfo,
                format_chassis_serial,
                "The serial number of the chassis.",
            ),
            field(
                "platform.slot_number",
                Q::PlatformInfo,
                format_number::<4>,
                "The number of the slot in the chassis, including slots of switches.",
            ),
            field(
                "platform.tray_index",
                Q::PlatformInfo,
                format_number::<5>,
                "The index of the compute tray in the chassis, not counting switches.",
            ),
            field(
                "platform.host_id",
                Q::PlatformInfo,
                format_number::<6>,
                "The number of the host within the slot.",
            ),
            field(
                "platform.peer_type",
                Q::PlatformInfo,
                format_peer_type,
                "How the NVLinks of the GPU connect to other GPUs: directly or through a switch.",
            ),
            number_field(
                "platform.module_id",
                Q::ModuleId,
                "The number of the GPU within its host.",
            ),
            field(
                "platform.gpu_fabric_guid",
                Q::PlatformInfo,
                format_fabric_guid,
                "The ID of the GPU in the fabric (GUID).",
            ),
        ],
    ),
    fields(&[
        field(
            "hostname",
            Q::Hostname,
            format_text,
            "The host name that was assigned to the GPU.",
        ),
        number_field(
            "bbx.time_run [seconds]",
            Q::TimeRun,
            "The total time for which a driver was loaded on the GPU, in seconds.",
        )
        .since(Release(610, 0)),
    ]),
];

/// Formats a chassis serial number, which has up to 16 characters. NVML returns it as two numbers.
fn format_chassis_serial(answer: &Answer) -> Cell {
    let half = |place| read_number(answer, place).map(|number| (number as u64).to_be_bytes());
    let bytes = [half(2)?, half(3)?].concat();
    let letters = bytes
        .iter()
        .take_while(|byte| **byte != 0)
        .map(|byte| char::from(*byte));
    Ok(letters.map(to_printable).collect())
}

fn format_peer_type(answer: &Answer) -> Cell {
    format_word(answer, 7, &["Direct Connected", "Switch Connected"])
}

fn format_fabric_guid(answer: &Answer) -> Cell {
    Ok(format!("0x{:016X}", read_number(answer, 0)? as u64))
}
