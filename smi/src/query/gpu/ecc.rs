//! Fields for memory encryption, ECC, and memory errors.

use gpumon_probe::vendor::nvml::query::Query as Q;

use super::super::cell::{as_number, format_enabled, format_yes_no};
use super::super::field::{Section, field, fields, with_title};
use crate::release::Release;

// The `nvmlMemoryErrorType_t` values.
const CORRECTED: u32 = 0;
const UNCORRECTED: u32 = 1;

// The `nvmlEccCounterType_t` values.
const VOLATILE: u32 = 0;
const AGGREGATE: u32 = 1;

// The `nvmlMemoryLocation_t` values.
const L1: u32 = 0;
const L2: u32 = 1;
const BOARD: u32 = 2;
const REGISTERS: u32 = 3;
const TEXTURE: u32 = 4;
const CBU: u32 = 6;
const SRAM: u32 = 7;

/// Defines a section with the counts of one kind of error in one counter type. It contains a field
/// for each location.
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
                    "Errors in the device memory.",
                ),
                field(
                    concat!($name, ".dram"),
                    Q::MemoryErrors($kind, $counter, BOARD),
                    as_number::<0>,
                    "Errors in the device memory.",
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
                    "Parity errors in the CBU, the unit that handles branches.",
                ),
                field(
                    concat!($name, ".sram"),
                    Q::MemoryErrors($kind, $counter, SRAM),
                    as_number::<0>,
                    "Errors in all memories on the chip (SRAM).",
                ),
                field(
                    concat!($name, ".total"),
                    Q::TotalEccErrors($kind, $counter),
                    as_number::<0>,
                    "Errors in all memories of the GPU.",
                ),
            ],
        }
    };
}

pub(super) const SECTIONS: &[Section] = &[
    with_title(
        "dramEncryption.mode",
        "Whether the device memory is encrypted: Enabled or Disabled. A change takes effect after \
         a reboot. Requires version 1.0 of the infoROM object for encryption.",
        &[
            field(
                "dramEncryption.mode.current",
                Q::DramEncryptionMode,
                format_enabled::<0>,
                "Whether the device memory is encrypted now.",
            ),
            field(
                "dramEncryption.mode.pending",
                Q::DramEncryptionMode,
                format_enabled::<1>,
                "Whether the device memory will be encrypted after the next reboot.",
            ),
        ],
    ),
    with_title(
        "ecc.mode",
        "Whether memory errors are detected and corrected (ECC): Enabled or Disabled. A change \
         takes effect after a reboot. Requires version 1.0 of the infoROM object for ECC.",
        &[
            field(
                "ecc.mode.current",
                Q::EccMode,
                format_enabled::<0>,
                "Whether ECC is enabled now.",
            ),
            field(
                "ecc.mode.pending",
                Q::EccMode,
                format_enabled::<1>,
                "Whether ECC will be enabled after the next reboot.",
            ),
        ],
    ),
    errors!(
        CORRECTED,
        VOLATILE,
        "ecc.errors.corrected.volatile",
        Some((
            "ecc.errors",
            "Numbers of memory errors. Single-bit errors are corrected without loss of data. \
             Double-bit errors are detected but not corrected. For texture memory, a second read \
             may correct an error. Volatile counters start when the driver is loaded. Aggregate \
             counters cover the lifetime of the board. NVIDIA's documentation of ECC describes the \
             effects of double-bit errors on programs.",
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
            "The number of unique parity errors in on-chip memory (SRAM) since the driver was \
             loaded.",
        ),
        field(
            "ecc.errors.uncorrected.volatile.sram.secded",
            Q::SramEccErrors,
            as_number::<4>,
            "The number of unique errors in on-chip memory (SRAM) that SEC-DED detected since the \
             driver was loaded.",
        ),
        // nvidia-smi 580 prints the volatile counter of parity errors for both of these fields,
        // although `-q` shows the correct counters.
        field(
            "ecc.errors.uncorrected.aggregate.sram.parity",
            Q::SramEccErrors,
            as_number::<3>,
            "Like nvidia-smi, the number of parity errors in on-chip memory (SRAM) since the \
             driver was loaded. `-q` shows the number over the board's lifetime.",
        ),
        field(
            "ecc.errors.uncorrected.aggregate.sram.secded",
            Q::SramEccErrors,
            as_number::<3>,
            "Like nvidia-smi, the number of parity errors in on-chip memory (SRAM) since the \
             driver was loaded. `-q` shows the number of errors that SEC-DED detected over the \
             board's lifetime.",
        ),
        field(
            "ecc.errors.uncorrected.aggregate.sram.thresholdExceeded",
            Q::SramEccErrors,
            format_yes_no::<11>,
            "Whether the number of errors in on-chip memory (SRAM) has exceeded the threshold.",
        ),
        field(
            "ecc.errors.uncorrected.aggregate.sram.l2",
            Q::SramEccErrors,
            as_number::<6>,
            "The number of unique errors in the L2 cache over the board's lifetime.",
        ),
        field(
            "ecc.errors.uncorrected.aggregate.sram.sm",
            Q::SramEccErrors,
            as_number::<7>,
            "The number of unique errors in streaming multiprocessors over the board's lifetime.",
        ),
        field(
            "ecc.errors.uncorrected.aggregate.sram.mcu",
            Q::SramEccErrors,
            as_number::<9>,
            "The number of unique errors in microcontrollers over the board's lifetime.",
        ),
        field(
            "ecc.errors.uncorrected.aggregate.sram.pcie",
            Q::SramEccErrors,
            as_number::<8>,
            "The number of errors in the PCIe unit over the board's lifetime.",
        ),
        field(
            "ecc.errors.uncorrected.aggregate.sram.other",
            Q::SramEccErrors,
            as_number::<10>,
            "The number of unique errors in other on-chip memory over the board's lifetime, \
             without L2 cache, multiprocessors, microcontrollers and PCIe unit.",
        ),
    ]),
];
