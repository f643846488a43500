//! Fields for MIG, GSP, C2C and the memory of confidential computing.

use gpumon_probe::vendor::nvml::query::Query as Q;

use super::super::cell::{as_enabled, mebibytes};
use super::super::field::{Section, field, with_title};

pub(super) const SECTIONS: &[Section] = &[
    with_title(
        "mig.mode",
        "Enabled where the GPU can be parted into instances, Disabled where not. A \
         change takes a reset of the GPU.",
        &[
            field(
                "mig.mode.current",
                Q::MigMode,
                as_enabled::<0>,
                "Whether it is turned on now.",
            ),
            field(
                "mig.mode.pending",
                Q::MigMode,
                as_enabled::<1>,
                "Whether it will be after the next reset.",
            ),
        ],
    ),
    with_title(
        "gsp.mode",
        "Enabled where the firmware on the GPU's own processor (GSP) does part of the \
         driver's work, Disabled where not.",
        &[
            field(
                "gsp.mode.current",
                Q::GspFirmwareMode,
                as_enabled::<0>,
                "Whether it does so now.",
            ),
            field(
                "gsp.mode.default",
                Q::GspFirmwareMode,
                as_enabled::<1>,
                "Whether it does so where nothing else was set.",
            ),
            field(
                "c2c.mode",
                Q::C2cMode,
                as_enabled::<0>,
                "Enabled where the GPU is linked to the processor chip to chip, Disabled where \
                 not.",
            ),
        ],
    ),
    with_title(
        "protected_memory",
        "The part of the memory that confidential computing protects.",
        &[
            field(
                "protected_memory.total [MiB]",
                Q::ProtectedMemory,
                mebibytes::<0>,
                "All of it.",
            ),
            field(
                "protected_memory.used [MiB]",
                Q::ProtectedMemory,
                mebibytes::<2>,
                "What programs have taken of it.",
            ),
            field(
                "protected_memory.free [MiB]",
                Q::ProtectedMemory,
                mebibytes::<1>,
                "What is left of it.",
            ),
        ],
    ),
];
