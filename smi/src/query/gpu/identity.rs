//! When this is, and which GPU of which machine.

use gpumon_probe::vendor::nvml::query::SystemQuery;

use super::super::cell::{supported, text};
use super::super::common::{self, NAME, SERIAL, TIMESTAMP, UUID};
use super::super::field::{Section, field};

pub(super) const SECTIONS: &[Section<()>] = &[
    Section {
        title: None,
        fields: &[
            field("timestamp", common::timestamp).about(TIMESTAMP),
            field("driver_version", |row| text(row.system(SystemQuery::DriverVersion)))
                .about("The version of the driver that is installed, letters and digits."),
        ],
    },
    Section {
        title: Some(("vgpu_driver_capability", "What the driver can do with virtual GPUs.")),
        fields: &[field("vgpu_driver_capability.heterogenous_multivGPU", |row| {
            supported(row.system(SystemQuery::VgpuDriverCapability(0)), 0)
        })
        .about("Whether one guest can have several virtual GPUs of different kinds.")],
    },
    Section {
        title: None,
        fields: &[
            field("count", |row| Ok(row.gpu.count().to_string())).about("How many NVIDIA GPUs the machine has."),
            field("name", common::name).about(NAME).or("gpu_name"),
            field("serial", common::serial).about(SERIAL).or("gpu_serial"),
            field("uuid", common::uuid).about(UUID).or("gpu_uuid"),
        ],
    },
];
