//! When this is, and which GPU of which machine.

use gpumon_probe::vendor::nvml::query::SystemQuery;

use super::super::cell::{supported, text};
use super::super::common::{self, NAME, SERIAL, TIMESTAMP, UUID};
use super::super::field::{Section, field, titled, untitled};
use crate::release::Release;

pub(super) const SECTIONS: &[Section<()>] = &[
    untitled(&[
        field("timestamp", common::timestamp).about(TIMESTAMP),
        field("driver_version", |row| {
            text(row.system(SystemQuery::DriverVersion))
        })
        .about("The version of the driver that is installed, letters and digits."),
        field("kmd_version", |row| {
            text(row.system(SystemQuery::DriverVersion))
        })
        .about("The version of the kernel-mode driver that is installed, letters and digits.")
        .since(Release(595, 0)),
    ]),
    titled(
        "vgpu_driver_capability",
        "What the driver can do with virtual GPUs.",
        &[
            field("vgpu_driver_capability.heterogenous_multivGPU", |row| {
                supported(row.system(SystemQuery::VgpuDriverCapability(0)), 0)
            })
            .about("Whether one guest can have several virtual GPUs of different kinds."),
        ],
    ),
    untitled(&[
        field("count", |row| Ok(row.gpu.context.count.to_string()))
            .about("How many NVIDIA GPUs the machine has."),
        field("name or gpu_name", common::name).about(NAME),
        field("serial or gpu_serial", common::serial).about(SERIAL),
        field("uuid or gpu_uuid", common::uuid).about(UUID),
    ]),
];
