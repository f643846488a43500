//! Fields for the board's settings and modes, for the versions of its firmware and InfoROM objects,
//! and for protected memory.

use gpumon_probe::vendor::nvml::query::{Answer, Code, Query as Q};

use crate::query::{
    cell::{
        Absent, Cell, format_enabled, format_mebibytes, format_text, format_word, format_yes_no,
    },
    table::{Section, field, fields, number_field, row_field, with_title},
};

/// The field ID `NVML_FI_DEV_GET_GPU_RECOVERY_ACTION`.
const RECOVERY_ACTION: u32 = 230;

pub(super) const SETTING_SECTIONS: &[Section] = &[
    fields(&[
        row_field(
            "index",
            |row| Ok(row.gpu.index.to_string()),
            "The index of the GPU, from 0. It can change after a reboot.",
        ),
        row_field(
            "display_mode",
            |_| Err(Code::DEPRECATED.into()),
            "Deprecated. Drivers do not report it anymore.",
        ),
        field(
            "display_attached",
            Q::DisplayMode,
            format_yes_no::<0>,
            "Whether a monitor is connected to the GPU: Yes or No.",
        ),
        field(
            "display_active",
            Q::DisplayActive,
            format_enabled::<0>,
            "Whether a display is initialized on the GPU, which uses device memory: Enabled or \
             Disabled. This is possible without a monitor.",
        ),
        field(
            "persistence_mode",
            Q::PersistenceMode,
            format_enabled::<0>,
            "Whether the driver stays loaded while no program uses the GPU, so that the next \
             program starts faster: Enabled or Disabled. Only available on Linux.",
        ),
        field(
            "addressing_mode",
            Q::AddressingMode,
            format_addressing_mode,
            "How the GPU accesses memory that the system allocated (malloc, mmap): with HMM, the \
             driver mirrors the CPU's page tables on the GPU; with ATS, the GPU uses the CPU's \
             page tables; with None, it cannot access this memory. Only available on Linux.",
        ),
        field(
            "accounting.mode",
            Q::AccountingMode,
            format_enabled::<0>,
            "Whether the driver keeps accounting data for each compute process, also after the \
             process has ended: Enabled or Disabled. The recorded time is 0 until the process \
             ends. See --help-query-accounted-apps.",
        ),
        number_field(
            "accounting.buffer_size",
            Q::AccountingBufferSize,
            "The number of processes for which the driver can keep accounting data. If there are \
             more, the oldest data is overwritten.",
        ),
    ]),
    with_title(
        "driver_model",
        "The driver model on Windows: WDDM for graphics, TCC or MCDM for computing, which start \
         kernels faster. The options -dm and -fdm select it. On Linux, this is N/A.",
        &[
            field(
                "driver_model.current",
                Q::DriverModel,
                format_driver_model::<0>,
                "The current driver model. N/A on Linux.",
            ),
            field(
                "driver_model.pending",
                Q::DriverModel,
                format_driver_model::<1>,
                "The driver model after the next reboot. N/A on Linux.",
            ),
        ],
    ),
    fields(&[field(
        "vbios_version",
        Q::VbiosVersion,
        format_text,
        "The version of the board's BIOS.",
    )]),
    with_title(
        "inforom",
        "The versions of the objects in the infoROM, a small memory on the board for its \
         configuration and history. Some features of a board require a certain version.",
        &[
            field(
                "inforom.img or inforom.image",
                Q::InforomImageVersion,
                format_text,
                "The version of the whole infoROM image, which identifies the content exactly. \
                 The versions of the individual objects determine the features of the board.",
            ),
            field(
                "inforom.oem",
                Q::InforomVersion(0),
                format_text,
                "The version of the manufacturer's configuration.",
            ),
            field(
                "inforom.ecc",
                Q::InforomVersion(1),
                format_text,
                "The version of the object for ECC error records.",
            ),
            field(
                "inforom.pwr or inforom.power",
                Q::InforomVersion(2),
                format_text,
                "The version of the object for power management.",
            ),
            field(
                "inforom.checksum_validation",
                Q::InforomIsValid,
                format_checksum_validity,
                "Whether the checksums of the infoROM are correct: valid or invalid.",
            ),
            field(
                "gpu_recovery_action",
                Q::Field(RECOVERY_ACTION, 0),
                format_recovery_action,
                "The action that the driver recommends to recover the GPU. It is N/A if the board \
                 does not report it, and an error if it could not be read.",
            ),
        ],
    ),
    with_title(
        "gom",
        "The GPU operation mode, which disables parts of the GPU to save power or to increase \
         throughput.\nAll On enables everything at full speed.\nCompute enables only compute, \
         without graphics.\nLow Double Precision is for graphics that do not need fast double \
         precision.\nThe option --gom selects the mode.",
        &[
            field(
                "gom.current or gpu_operation_mode.current",
                Q::GpuOperationMode,
                format_operation_mode::<0>,
                "The current operation mode.",
            ),
            field(
                "gom.pending or gpu_operation_mode.pending",
                Q::GpuOperationMode,
                format_operation_mode::<1>,
                "The operation mode after the next reboot.",
            ),
        ],
    ),
];

fn format_checksum_validity(answer: &Answer) -> Cell {
    match answer {
        Ok(_) => Ok("valid".to_owned()),
        Err(Code::CORRUPTED_INFOROM) => Err(Absent::new("invalid")),
        Err(code) => Err((*code).into()),
    }
}

fn format_driver_model<const PLACE: usize>(answer: &Answer) -> Cell {
    format_word(answer, PLACE, &["WDDM", "TCC", "MCDM"])
}

fn format_operation_mode<const PLACE: usize>(answer: &Answer) -> Cell {
    format_word(
        answer,
        PLACE,
        &["All On", "Compute", "Low Double Precision"],
    )
}

fn format_recovery_action(answer: &Answer) -> Cell {
    format_word(
        answer,
        0,
        &["None", "Reset", "Reboot", "Drain P2P", "Drain and Reset"],
    )
}

fn format_addressing_mode(answer: &Answer) -> Cell {
    format_word(answer, 0, &["None", "HMM", "ATS"])
}

/// Fields for MIG, GSP, C2C, and the memory that is protected by confidential computing.
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
