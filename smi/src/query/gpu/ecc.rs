//! Fields for the encryption, the error correction and the errors of the memory.

use gpumon_probe::vendor::nvml::query::Query as Q;

use super::super::cell::{as_enabled, as_number, as_yes_no};
use super::super::field::{Section, field, fields, with_title};
use crate::release::Release;

// The values of `nvmlMemoryErrorType_t`.
const CORRECTED: u32 = 0;
const UNCORRECTED: u32 = 1;

// The values of `nvmlEccCounterType_t`.
const VOLATILE: u32 = 0;
const AGGREGATE: u32 = 1;

// The values of `nvmlMemoryLocation_t`.
const L1: u32 = 0;
const L2: u32 = 1;
const BOARD: u32 = 2;
const REGISTERS: u32 = 3;
const TEXTURE: u32 = 4;
const CBU: u32 = 6;
const SRAM: u32 = 7;

/// The fields for one kind of error by one counter, one field for each location.
macro_rules! errors {
    ($kind:ident, $counter:ident, $name:literal, $title:expr) => {
        Section {
            title: $title,
            since: Release(0, 0),
            fields: &[
                field(
                    concat!($name, ".device_memory"),
                    Q::MemoryErrors($kind, $counter, BOARD),
                    as_number::<0>,
                    "Errors in the board's memory.",
                ),
                field(
                    concat!($name, ".dram"),
                    Q::MemoryErrors($kind, $counter, BOARD),
                    as_number::<0>,
                    "Errors in the board's memory.",
                ),
                field(
                    concat!($name, ".register_file"),
                    Q::MemoryErrors($kind, $counter, REGISTERS),
                    as_number::<0>,
                    "Errors in the register files.",
                ),
                field(
                    concat!($name, ".l1_cache"),
                    Q::MemoryErrors($kind, $counter, L1),
                    as_number::<0>,
                    "Errors in the L1 caches.",
                ),
                field(
                    concat!($name, ".l2_cache"),
                    Q::MemoryErrors($kind, $counter, L2),
                    as_number::<0>,
                    "Errors in the L2 cache.",
                ),
                field(
                    concat!($name, ".texture_memory"),
                    Q::MemoryErrors($kind, $counter, TEXTURE),
                    as_number::<0>,
                    "Parity errors in the texture memory.",
                ),
                field(
                    concat!($name, ".cbu"),
                    Q::MemoryErrors($kind, $counter, CBU),
                    as_number::<0>,
                    "Parity errors in the CBU, which handles branches.",
                ),
                field(
                    concat!($name, ".sram"),
                    Q::MemoryErrors($kind, $counter, SRAM),
                    as_number::<0>,
                    "Errors in all memories within the chip.",
                ),
                field(
                    concat!($name, ".total"),
                    Q::TotalEccErrors($kind, $counter),
                    as_number::<0>,
                    "Errors in the whole chip.",
                ),
            ],
        }
    };
}

pub(super) const SECTIONS: &[Section] = &[
    with_title(
        "dramEncryption.mode",
        "Enabled where the memory is encrypted, Disabled where not. A change takes a \
         reboot. It needs version 1.0 of the infoROM's object for it.",
        &[
            field(
                "dramEncryption.mode.current",
                Q::DramEncryptionMode,
                as_enabled::<0>,
                "Whether it is encrypted now.",
            ),
            field(
                "dramEncryption.mode.pending",
                Q::DramEncryptionMode,
                as_enabled::<1>,
                "Whether it will be after the next reboot.",
            ),
        ],
    ),
    with_title(
        "ecc.mode",
        "Enabled where errors of the memory are corrected, Disabled where not. A change \
         takes a reboot. It needs version 1.0 of the infoROM's object for it.",
        &[
            field(
                "ecc.mode.current",
                Q::EccMode,
                as_enabled::<0>,
                "Whether they are corrected now.",
            ),
            field(
                "ecc.mode.pending",
                Q::EccMode,
                as_enabled::<1>,
                "Whether they will be after the next reboot.",
            ),
        ],
    ),
    errors!(
        CORRECTED,
        VOLATILE,
        "ecc.errors.corrected.volatile",
        Some((
            "ecc.errors",
            "How often memory was found to be wrong. An error of one bit is corrected, and \
             nothing is lost by it; one of two bits is only noticed. In texture memory \
             reading again can help, or not. Volatile counts begin with the loading of the \
             driver, aggregate ones are those of the board's whole life. What an error of \
             two bits does to a program is told by NVIDIA's documents on ECC.",
        ))
    ),
    errors!(CORRECTED, AGGREGATE, "ecc.errors.corrected.aggregate", None),
    errors!(
        UNCORRECTED,
        VOLATILE,
        "ecc.errors.uncorrected.volatile",
        None
    ),
    errors!(
        UNCORRECTED,
        AGGREGATE,
        "ecc.errors.uncorrected.aggregate",
        None
    ),
    fields(&[
        field(
            "ecc.errors.uncorrected.volatile.sram.parity",
            Q::SramEccErrors,
            as_number::<3>,
            "Parity errors within the chip since the driver was loaded, each counted once.",
        ),
        field(
            "ecc.errors.uncorrected.volatile.sram.secded",
            Q::SramEccErrors,
            as_number::<4>,
            "Errors within the chip that SEC-DED found since the driver was loaded, each \
             counted once.",
        ),
        // For both of these fields, nvidia-smi 580 prints the volatile counter of parity errors.
        // Its `-q` does not.
        field(
            "ecc.errors.uncorrected.aggregate.sram.parity",
            Q::SramEccErrors,
            as_number::<3>,
            "Parity errors within the chip since the driver was loaded, as nvidia-smi prints \
             them; `-q` has those ever.",
        ),
        field(
            "ecc.errors.uncorrected.aggregate.sram.secded",
            Q::SramEccErrors,
            as_number::<3>,
            "Parity errors within the chip since the driver was loaded, as nvidia-smi prints \
             them; `-q` has the errors that SEC-DED ever found.",
        ),
        field(
            "ecc.errors.uncorrected.aggregate.sram.thresholdExceeded",
            Q::SramEccErrors,
            as_yes_no::<11>,
            "Whether there were more errors within the chip than it should ever have.",
        ),
        field(
            "ecc.errors.uncorrected.aggregate.sram.l2",
            Q::SramEccErrors,
            as_number::<6>,
            "Errors in the L2 cache ever, each counted once.",
        ),
        field(
            "ecc.errors.uncorrected.aggregate.sram.sm",
            Q::SramEccErrors,
            as_number::<7>,
            "Errors in multiprocessors ever, each counted once.",
        ),
        field(
            "ecc.errors.uncorrected.aggregate.sram.mcu",
            Q::SramEccErrors,
            as_number::<9>,
            "Errors in microcontrollers ever, each counted once.",
        ),
        field(
            "ecc.errors.uncorrected.aggregate.sram.pcie",
            Q::SramEccErrors,
            as_number::<8>,
            "Errors in the PCIe unit ever.",
        ),
        field(
            "ecc.errors.uncorrected.aggregate.sram.other",
            Q::SramEccErrors,
            as_number::<10>,
            "Errors ever within the chip but in none of L2 cache, multiprocessors, \
             microcontrollers and PCIe unit, each counted once.",
        ),
    ]),
];
