//! Fields for the time, the machine and the identity of the GPU.

use gpumon_probe::vendor::nvml::query::{Query, SystemQuery};

use super::super::cell::{supported, text};
use super::super::common::{self, NAME, SERIAL, TIMESTAMP, UUID};
use super::super::field::{Section, field, fields, row_field, with_title};
use crate::release::Release;

pub(super) const SECTIONS: &[Section] = &[
    fields(&[
        row_field("timestamp", common::timestamp, TIMESTAMP),
        row_field(
            "driver_version",
            |row| text(&row.system(SystemQuery::DriverVersion)),
            "The version of the driver that is installed, letters and digits.",
        ),
        row_field(
            "kmd_version",
            |row| text(&row.system(SystemQuery::DriverVersion)),
            "The version of the kernel-mode driver that is installed, letters and digits.",
        )
        .since(Release(595, 0)),
    ]),
    with_title(
        "vgpu_driver_capability",
        "What the driver can do with virtual GPUs.",
        &[row_field(
            "vgpu_driver_capability.heterogenous_multivGPU",
            |row| supported::<0>(&row.system(SystemQuery::VgpuDriverCapability(0))),
            "Whether one guest can have several virtual GPUs of different kinds.",
        )],
    ),
    fields(&[
        row_field(
            "count",
            |row| Ok(row.gpu.context.count.to_string()),
            "How many NVIDIA GPUs the machine has.",
        ),
        field("name or gpu_name", Query::Name, text, NAME),
        field("serial or gpu_serial", Query::Serial, text, SERIAL),
        field("uuid or gpu_uuid", Query::Uuid, text, UUID),
    ]),
];
