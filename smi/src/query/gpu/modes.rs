//! Fields for MIG, GSP, C2C, and confidential computing memory.

use gpumon_probe::vendor::nvml::query::Query as Q;

use super::super::cell::{format_enabled, format_mebibytes};
use super::super::field::{Section, field, with_title};

pub(super) const MODE_SECTIONS: &[Section] = &[
    with_title(
        "mig.mode",
        "Whether the GPU can be partitioned into instances (MIG): Enabled or Disabled. A change \
         takes effect after a reset of the GPU.",
        &[
            field(
                "mig.mode.current",
                Q::MigMode,
                format_enabled::<0>,
                "Whether MIG mode is enabled now.",
            ),
            field(
                "mig.mode.pending",
                Q::MigMode,
                format_enabled::<1>,
                "Whether MIG mode will be enabled after the next reset.",
            ),
        ],
    ),
    with_title(
        "gsp.mode",
        "Whether firmware on the GPU System Processor (GSP) does part of the driver's work: \
         Enabled or Disabled.",
        &[
            field(
                "gsp.mode.current",
                Q::GspFirmwareMode,
                format_enabled::<0>,
                "Whether the GSP firmware is in use now.",
            ),
            field(
                "gsp.mode.default",
                Q::GspFirmwareMode,
                format_enabled::<1>,
                "Whether the GSP firmware is used by default.",
            ),
            field(
                "c2c.mode",
                Q::C2cMode,
                format_enabled::<0>,
                "Whether the GPU is connected to the CPU by a chip-to-chip link (C2C): Enabled or \
                 Disabled.",
            ),
        ],
    ),
    with_title(
        "protected_memory",
        "The memory that is protected by confidential computing.",
        &[
            field(
                "protected_memory.total [MiB]",
                Q::ProtectedMemory,
                format_mebibytes::<0>,
                "The total protected memory, in MiB.",
            ),
            field(
                "protected_memory.used [MiB]",
                Q::ProtectedMemory,
                format_mebibytes::<2>,
                "The protected memory used by programs, in MiB.",
            ),
            field(
                "protected_memory.free [MiB]",
                Q::ProtectedMemory,
                format_mebibytes::<1>,
                "The free protected memory, in MiB.",
            ),
        ],
    ),
];
