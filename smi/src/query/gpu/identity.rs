//! When this is, and which GPU of which machine.

use gpumon_probe::vendor::nvml::query::SystemQuery;

use super::super::cell::{supported, text};
use super::super::common::{self, NAME, SERIAL, TIMESTAMP, UUID};
use super::super::field::{Section, field};

/// The fields.
pub(super) const SECTIONS: &[Section<()>] = &[
    Section {
        title: None,
        fields: &[
            field("timestamp", TIMESTAMP, common::timestamp),
            field("driver_version", "The version of the driver that is installed, letters and digits.", |row| {
                text(row.system(SystemQuery::DriverVersion))
            }),
        ],
    },
    Section {
        title: Some(("vgpu_driver_capability", "What the driver can do with virtual GPUs.")),
        fields: &[field(
            "vgpu_driver_capability.heterogenous_multivGPU",
            "Whether one guest can have several virtual GPUs of different kinds.",
            |row| supported(row.system(SystemQuery::VgpuDriverCapability(0)), 0),
        )],
    },
    Section {
        title: None,
        fields: &[
            field("count", "How many NVIDIA GPUs the machine has.", |row| Ok(row.gpu.count().to_string())),
            field("name", NAME, common::name).or("gpu_name"),
            field("serial", SERIAL, common::serial).or("gpu_serial"),
            field("uuid", UUID, common::uuid).or("gpu_uuid"),
        ],
    },
];
