//! MIG, GSP, C2C, and the memory of confidential computing.

use gpumon_probe::vendor::nvml::query::Query as Q;

use super::super::cell::{enabled, mebibytes};
use super::super::field::{Section, field};

/// The fields.
pub(super) const SECTIONS: &[Section<()>] = &[
    Section {
        title: Some((
            "mig.mode",
            "Enabled where the GPU can be parted into instances, Disabled where not. A change takes a \
             reset of the GPU.",
        )),
        fields: &[
            field("mig.mode.current", "Whether it is turned on now.", |row| enabled(row.ask(Q::MigMode), 0)),
            field("mig.mode.pending", "Whether it will be after the next reset.", |row| {
                enabled(row.ask(Q::MigMode), 1)
            }),
        ],
    },
    Section {
        title: Some((
            "gsp.mode",
            "Enabled where the firmware on the GPU's own processor (GSP) does part of the driver's work, \
             Disabled where not.",
        )),
        fields: &[
            field("gsp.mode.current", "Whether it does so now.", |row| enabled(row.ask(Q::GspFirmwareMode), 0)),
            field("gsp.mode.default", "Whether it does so where nothing else was set.", |row| {
                enabled(row.ask(Q::GspFirmwareMode), 1)
            }),
            field(
                "c2c.mode",
                "Enabled where the GPU is linked to the processor chip to chip, Disabled where not.",
                |row| enabled(row.ask(Q::C2cMode), 0),
            ),
        ],
    },
    Section {
        title: Some(("protected_memory", "The part of the memory that confidential computing protects.")),
        fields: &[
            field("protected_memory.total", "All of it.", |row| mebibytes(row.ask(Q::ProtectedMemory), 0)).unit("MiB"),
            field("protected_memory.used", "What programs have taken of it.", |row| {
                mebibytes(row.ask(Q::ProtectedMemory), 2)
            })
            .unit("MiB"),
            field("protected_memory.free", "What is left of it.", |row| mebibytes(row.ask(Q::ProtectedMemory), 1))
                .unit("MiB"),
        ],
    },
];
