//! How the board is set up, and the versions of what is stored on it.

use gpumon_probe::vendor::nvml::query::{Code, Query as Q};

use super::super::cell::{Absent, Cell, enabled, number, text, word, yes};
use super::super::field::{Section, field, titled, untitled};
use super::super::row::Row;

/// `nvmlDriverModel_t`.
const DRIVER_MODELS: [&str; 3] = ["WDDM", "TCC", "MCDM"];

/// `nvmlGpuOperationMode_t`.
const OPERATION_MODES: [&str; 3] = ["All On", "Compute", "Low Double Precision"];

/// `nvmlDeviceGpuRecoveryAction_t`.
const RECOVERY_ACTIONS: [&str; 5] = ["None", "Reset", "Reboot", "Drain P2P", "Drain and Reset"];

/// `NVML_FI_DEV_GET_GPU_RECOVERY_ACTION`.
const RECOVERY_ACTION: u32 = 230;

pub(super) const SECTIONS: &[Section<()>] = &[
    untitled(&[
        field("index", |row| Ok(row.gpu.index.to_string()))
            .about("The number of the GPU, from 0. A reboot can change it."),
        field("display_mode", |_| Err(Code::DEPRECATED.into())).about("No longer told by the driver."),
        field("display_attached", |row| yes(row.ask(Q::DisplayMode), 0))
            .about("Yes where a monitor is plugged into one of the GPU's connectors, No where there is none."),
        field("display_active", |row| enabled(row.ask(Q::DisplayActive), 0)).about(
            "Enabled where a display is set up on the GPU, which takes memory, Disabled where not. It can be set up \
             without any monitor.",
        ),
        field("persistence_mode", |row| enabled(row.ask(Q::PersistenceMode), 0)).about(
            "Enabled where the driver stays loaded while no program uses the GPU, so that the next one starts faster, \
             Disabled where it is unloaded. Only on Linux.",
        ),
        field("addressing_mode", |row| word(row.ask(Q::AddressingMode), 0, &["None", "HMM", "ATS"])).about(
            "How the GPU reaches memory that the system gave out (malloc, mmap): HMM where the driver mirrors the \
             processor's page tables on the GPU, ATS where the GPU asks the processor's own page tables, None where it \
             does not reach it. Only on Linux.",
        ),
        field("accounting.mode", |row| enabled(row.ask(Q::AccountingMode), 0)).about(
            "Enabled where the driver keeps accounts of each compute process, also after it has ended, Disabled where \
             not. The running time in them is 0 until the process ends. See --help-query-accounted-apps.",
        ),
        field("accounting.buffer_size", |row| number(row.ask(Q::AccountingBufferSize), 0))
            .about("Of how many processes the driver can keep accounts. One more takes the place of the oldest."),
    ]),
    titled(
        "driver_model",
        "Windows knows the driver models WDDM, for graphics, and TCC and MCDM, for computing, with which kernels start \
         faster. The switches -dm and -fdm choose one. On Linux there is only one, and it is N/A.",
        &[
            field("driver_model.current", |row| word(row.ask(Q::DriverModel), 0, &DRIVER_MODELS))
                .about("The driver model in use. N/A on Linux."),
            field("driver_model.pending", |row| word(row.ask(Q::DriverModel), 1, &DRIVER_MODELS))
                .about("The driver model after the next reboot. N/A on Linux."),
        ],
    ),
    untitled(&[field("vbios_version", |row| text(row.ask(Q::VbiosVersion))).about("The version of the board's BIOS.")]),
    titled(
        "inforom",
        "The versions of what stands in the infoROM, a small memory on the board for its configuration and history. \
         Some abilities of a board need a certain version.",
        &[
            field("inforom.img or inforom.image", |row| text(row.ask(Q::InforomImageVersion))).about(
                "The version of the whole image, which tells exactly what was written to the board. What the board can \
                 do is told by the versions of the parts.",
            ),
            field("inforom.oem", inforom::<0>).about("The version of the manufacturer's configuration."),
            field("inforom.ecc", inforom::<1>).about("The version of the records of ECC errors."),
            field("inforom.pwr or inforom.power", inforom::<2>).about("The version of the data for power management."),
            field("inforom.checksum_validation", checksum)
                .about("Whether the infoROM's checksums are right: valid or invalid."),
            field("gpu_recovery_action", |row| word(row.ask(Q::Field(RECOVERY_ACTION, 0)), 0, &RECOVERY_ACTIONS))
                .about(
                    "What the driver recommends to bring the GPU back from a bad state. N/A where the board does not \
                     tell; an error where it could not be read.",
                ),
        ],
    ),
    titled(
        "gom",
        "The GPU's operation mode turns parts of it off, for less power or more throughput.
All On leaves everything running at full speed.
Compute is for computing alone, without graphics.
Low Double Precision is for graphics that have no need of fast double precision.
The switch --gom chooses one.",
        &[
            field("gom.current or gpu_operation_mode.current", |row| {
                word(row.ask(Q::GpuOperationMode), 0, &OPERATION_MODES)
            })
            .about("The operation mode in use."),
            field("gom.pending or gpu_operation_mode.pending", |row| {
                word(row.ask(Q::GpuOperationMode), 1, &OPERATION_MODES)
            })
            .about("The operation mode after the next reboot."),
        ],
    ),
];

/// The version of one `nvmlInforomObject_t`.
fn inforom<const OBJECT: u32>(row: &Row<'_, ()>) -> Cell {
    text(row.ask(Q::InforomVersion(OBJECT)))
}

fn checksum(row: &Row<'_, ()>) -> Cell {
    match row.ask(Q::InforomIsValid) {
        Ok(_) => Ok("valid".to_owned()),
        Err(Code::CORRUPTED_INFOROM) => Err(Absent::word("invalid")),
        Err(code) => Err(code.into()),
    }
}
