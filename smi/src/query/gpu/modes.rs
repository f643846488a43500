//! MIG, GSP, C2C, and the memory of confidential computing.

use gpumon_probe::vendor::nvml::query::Query as Q;

use super::super::cell::{enabled, mebibytes};
use super::super::field::{Section, field, titled};

pub(super) const SECTIONS: &[Section<()>] = &[
    titled(
        "mig.mode",
        "Enabled where the GPU can be parted into instances, Disabled where not. A change takes a reset of the GPU.",
        &[
            field("mig.mode.current", |row| enabled(row.ask(Q::MigMode), 0)).about("Whether it is turned on now."),
            field("mig.mode.pending", |row| enabled(row.ask(Q::MigMode), 1))
                .about("Whether it will be after the next reset."),
        ],
    ),
    titled(
        "gsp.mode",
        "Enabled where the firmware on the GPU's own processor (GSP) does part of the driver's work, Disabled where \
         not.",
        &[
            field("gsp.mode.current", |row| enabled(row.ask(Q::GspFirmwareMode), 0)).about("Whether it does so now."),
            field("gsp.mode.default", |row| enabled(row.ask(Q::GspFirmwareMode), 1))
                .about("Whether it does so where nothing else was set."),
            field("c2c.mode", |row| enabled(row.ask(Q::C2cMode), 0))
                .about("Enabled where the GPU is linked to the processor chip to chip, Disabled where not."),
        ],
    ),
    titled(
        "protected_memory",
        "The part of the memory that confidential computing protects.",
        &[
            field("protected_memory.total [MiB]", |row| mebibytes(row.ask(Q::ProtectedMemory), 0)).about("All of it."),
            field("protected_memory.used [MiB]", |row| mebibytes(row.ask(Q::ProtectedMemory), 2))
                .about("What programs have taken of it."),
            field("protected_memory.free [MiB]", |row| mebibytes(row.ask(Q::ProtectedMemory), 1))
                .about("What is left of it."),
        ],
    ),
];
