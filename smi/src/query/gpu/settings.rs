//! Fields for the settings of the board and the versions of its firmware and objects.

use gpumon_probe::vendor::nvml::query::{Answer, Code, Query as Q};

use super::super::cell::{Absent, Cell, as_enabled, as_number, as_word, as_yes_no, text};
use super::super::field::{Section, field, fields, row_field, with_title};

/// The field ID `NVML_FI_DEV_GET_GPU_RECOVERY_ACTION`.
const RECOVERY_ACTION: u32 = 230;

pub(super) const SECTIONS: &[Section] = &[
    fields(&[
        row_field(
            "index",
            |row| Ok(row.gpu.index.to_string()),
            "The number of the GPU, from 0. A reboot can change it.",
        ),
        row_field(
            "display_mode",
            |_| Err(Code::DEPRECATED.into()),
            "No longer told by the driver.",
        ),
        field(
            "display_attached",
            Q::DisplayMode,
            as_yes_no::<0>,
            "Yes where a monitor is plugged into one of the GPU's connectors, No where there \
             is none.",
        ),
        field(
            "display_active",
            Q::DisplayActive,
            as_enabled::<0>,
            "Enabled where a display is set up on the GPU, which takes memory, Disabled \
             where not. It can be set up without any monitor.",
        ),
        field(
            "persistence_mode",
            Q::PersistenceMode,
            as_enabled::<0>,
            "Enabled where the driver stays loaded while no program uses the GPU, so that \
             the next one starts faster, Disabled where it is unloaded. Only on Linux.",
        ),
        field(
            "addressing_mode",
            Q::AddressingMode,
            addressing_mode,
            "How the GPU reaches memory that the system gave out (malloc, mmap): HMM where \
             the driver mirrors the processor's page tables on the GPU, ATS where the GPU \
             asks the processor's own page tables, None where it does not reach it. Only on \
             Linux.",
        ),
        field(
            "accounting.mode",
            Q::AccountingMode,
            as_enabled::<0>,
            "Enabled where the driver keeps accounts of each compute process, also after it \
             has ended, Disabled where not. The running time in them is 0 until the process \
             ends. See --help-query-accounted-apps.",
        ),
        field(
            "accounting.buffer_size",
            Q::AccountingBufferSize,
            as_number::<0>,
            "Of how many processes the driver can keep accounts. One more takes the place of \
             the oldest.",
        ),
    ]),
    with_title(
        "driver_model",
        "Windows knows the driver models WDDM, for graphics, and TCC and MCDM, for \
         computing, with which kernels start faster. The switches -dm and -fdm choose \
         one. On Linux there is only one, and it is N/A.",
        &[
            field(
                "driver_model.current",
                Q::DriverModel,
                driver_model::<0>,
                "The driver model in use. N/A on Linux.",
            ),
            field(
                "driver_model.pending",
                Q::DriverModel,
                driver_model::<1>,
                "The driver model after the next reboot. N/A on Linux.",
            ),
        ],
    ),
    fields(&[field(
        "vbios_version",
        Q::VbiosVersion,
        text,
        "The version of the board's BIOS.",
    )]),
    with_title(
        "inforom",
        "The versions of what stands in the infoROM, a small memory on the board for its \
         configuration and history. Some abilities of a board need a certain version.",
        &[
            field(
                "inforom.img or inforom.image",
                Q::InforomImageVersion,
                text,
                "The version of the whole image, which tells exactly what was written to the \
                 board. What the board can do is told by the versions of the parts.",
            ),
            field(
                "inforom.oem",
                Q::InforomVersion(0),
                text,
                "The version of the manufacturer's configuration.",
            ),
            field(
                "inforom.ecc",
                Q::InforomVersion(1),
                text,
                "The version of the records of ECC errors.",
            ),
            field(
                "inforom.pwr or inforom.power",
                Q::InforomVersion(2),
                text,
                "The version of the data for power management.",
            ),
            field(
                "inforom.checksum_validation",
                Q::InforomIsValid,
                checksum_word,
                "Whether the infoROM's checksums are right: valid or invalid.",
            ),
            field(
                "gpu_recovery_action",
                Q::Field(RECOVERY_ACTION, 0),
                recovery_action,
                "What the driver recommends to bring the GPU back from a bad state. N/A where \
                 the board does not tell; an error where it could not be read.",
            ),
        ],
    ),
    with_title(
        "gom",
        "The GPU's operation mode turns parts of it off, for less power or more \
         throughput.
All On leaves everything running at full speed.
Compute is for computing alone, without graphics.
Low Double Precision is for graphics that have no need of fast double precision.
The switch --gom chooses one.",
        &[
            field(
                "gom.current or gpu_operation_mode.current",
                Q::GpuOperationMode,
                operation_mode::<0>,
                "The operation mode in use.",
            ),
            field(
                "gom.pending or gpu_operation_mode.pending",
                Q::GpuOperationMode,
                operation_mode::<1>,
                "The operation mode after the next reboot.",
            ),
        ],
    ),
];

fn checksum_word(answer: &Answer) -> Cell {
    match answer {
        Ok(_) => Ok("valid".to_owned()),
        Err(Code::CORRUPTED_INFOROM) => Err(Absent::word("invalid")),
        Err(code) => Err((*code).into()),
    }
}

fn driver_model<const PLACE: usize>(answer: &Answer) -> Cell {
    as_word(answer, PLACE, &["WDDM", "TCC", "MCDM"])
}

fn operation_mode<const PLACE: usize>(answer: &Answer) -> Cell {
    as_word(
        answer,
        PLACE,
        &["All On", "Compute", "Low Double Precision"],
    )
}

fn recovery_action(answer: &Answer) -> Cell {
    as_word(
        answer,
        0,
        &["None", "Reset", "Reboot", "Drain P2P", "Drain and Reset"],
    )
}

fn addressing_mode(answer: &Answer) -> Cell {
    as_word(answer, 0, &["None", "HMM", "ATS"])
}
