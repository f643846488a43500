//! Fields for the time, the machine, and the GPU's identity.

use gpumon_probe::vendor::nvml::query::{Query, SystemQuery};

use super::super::cell::{format_supported, format_text};
use super::super::common::{self, NAME, SERIAL, TIMESTAMP, UUID};
use super::super::field::{Section, field, fields, row_field, with_title};
use crate::release::Release;

pub(super) const IDENTITY_SECTIONS: &[Section] = &[
    fields(&[
        row_field("timestamp", common::format_timestamp, TIMESTAMP),
        row_field(
            "driver_version",
            |row| format_text(&row.run_system_query(SystemQuery::DriverVersion)),
            "The version of the installed driver, in letters and digits.",
        ),
        row_field(
            "kmd_version",
            |row| format_text(&row.run_system_query(SystemQuery::DriverVersion)),
            "The version of the installed kernel-mode driver, in letters and digits.",
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
        field("name or gpu_name", Query::Name, format_text, NAME),
        field("serial or gpu_serial", Query::Serial, format_text, SERIAL),
        field("uuid or gpu_uuid", Query::Uuid, format_text, UUID),
    ]),
];
