//! Fields for memory encryption, ECC, memory errors, and repaired memory.

use gpumon_probe::vendor::nvml::query::{Answer, Code, Query as Q};

use crate::{
    query::{
        cell::{Cell, format_enabled, format_number, format_yes_no, read_number},
        table::{Row, Section, field, fields, number_field, row_field, with_title},
    },
    release::{self, Release},
};

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

/// Defines a section that counts one type of memory error in one type of counter. It contains a
/// field for each location in memory.
macro_rules! errors {
    ($kind:ident, $counter:ident, $name:literal, $title:expr) => {
        Section {
            title: $title,
            since: Release(0, 0),
            fields: &[
                number_field(
                    concat!($name, ".device_memory"),
                    Q::MemoryErrors($kind, $counter, BOARD),
                    "Errors in the device memory.",
                ),
                number_field(
                    concat!($name, ".dram"),
                    Q::MemoryErrors($kind, $counter, BOARD),
                    "Errors in the device memory.",
                ),
                number_field(
                    concat!($name, ".register_file"),
                    Q::MemoryErrors($kind, $counter, REGISTERS),
                    "Errors in the register files.",
                ),
                number_field(
                    concat!($name, ".l1_cache"),
                    Q::MemoryErrors($kind, $counter, L1),
                    "Errors in the L1 caches.",
                ),
                number_field(
                    concat!($name, ".l2_cache"),
                    Q::MemoryErrors($kind, $counter, L2),
                    "Errors in the L2 cache.",
                ),
                number_field(
                    concat!($name, ".texture_memory"),
                    Q::MemoryErrors($kind, $counter, TEXTURE),
                    "Parity errors in the texture memory.",
                ),
                number_field(
                    concat!($name, ".cbu"),
                    Q::MemoryErrors($kind, $counter, CBU),
                    "Parity errors in the CBU, the unit that handles branches.",
                ),
                number_field(
                    concat!($name, ".sram"),
                    Q::MemoryErrors($kind, $counter, SRAM),
                    "Errors in all memories on the chip (SRAM).",
                ),
                number_field(
                    concat!($name, ".total"),
                    Q::TotalEccErrors($kind, $counter),
                    "Errors in all memories of the GPU.",
                ),
            ],
        }
    };
}

pub(super) const ECC_SECTIONS: &[Section] = &[
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
            format_number::<3>,
            "The number of unique parity errors in on-chip memory (SRAM) since the driver was \
             loaded.",
        ),
        field(
            "ecc.errors.uncorrected.volatile.sram.secded",
            Q::SramEccErrors,
            format_number::<4>,
            "The number of unique errors in on-chip memory (SRAM) that were detected by SEC-DED \
             (single-error correction, double-error detection) since the driver was loaded.",
        ),
        // nvidia-smi 580 prints the volatile counter of parity errors for both of these fields,
        // although `-q` shows the correct counters.
        field(
            "ecc.errors.uncorrected.aggregate.sram.parity",
            Q::SramEccErrors,
            format_number::<3>,
            "As in nvidia-smi, this is the number of parity errors in on-chip memory (SRAM) \
             since the driver was loaded. `-q` shows the number over the board's lifetime.",
        ),
        field(
            "ecc.errors.uncorrected.aggregate.sram.secded",
            Q::SramEccErrors,
            format_number::<3>,
            "As in nvidia-smi, this is the number of parity errors in on-chip memory (SRAM) \
             since the driver was loaded. `-q` shows the number of errors that were detected \
             by SEC-DED (single-error correction, double-error detection) over the board's \
             lifetime.",
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
            format_number::<6>,
            "The number of unique errors in the L2 cache over the board's lifetime.",
        ),
        field(
            "ecc.errors.uncorrected.aggregate.sram.sm",
            Q::SramEccErrors,
            format_number::<7>,
            "The number of unique errors in streaming multiprocessors over the board's lifetime.",
        ),
        field(
            "ecc.errors.uncorrected.aggregate.sram.mcu",
            Q::SramEccErrors,
            format_number::<9>,
            "The number of unique errors in microcontrollers over the board's lifetime.",
        ),
        field(
            "ecc.errors.uncorrected.aggregate.sram.pcie",
            Q::SramEccErrors,
            format_number::<8>,
            "The number of errors in the PCIe unit over the board's lifetime.",
        ),
        field(
            "ecc.errors.uncorrected.aggregate.sram.other",
            Q::SramEccErrors,
            format_number::<10>,
            "The number of unique errors in other on-chip memory over the board's lifetime, \
             excluding the L2 cache, the multiprocessors, the microcontrollers and the PCIe \
             unit.",
        ),
    ]),
];

// Repaired memory: retired pages on boards up to Volta, and remapped rows on boards since Ampere.

pub(super) const RETIRED_PAGE_SECTIONS: &[Section] = &[with_title(
    "retired_pages",
    "Pages of the device memory that fail can be retired: after several single-bit errors in the \
     page, or after one double-bit error. The driver does not allocate retired pages to programs.",
    &[
        field(
            "retired_pages.single_bit_ecc.count or retired_pages.sbe",
            Q::RetiredPages(0),
            format_page_count,
            "The number of pages that were retired because of several single-bit errors.",
        ),
        field(
            "retired_pages.double_bit.count or retired_pages.dbe",
            Q::RetiredPages(1),
            format_page_count,
            "The number of pages that were retired because of a double-bit error.",
        ),
        field(
            "retired_pages.pending",
            Q::RetiredPagesPending,
            format_yes_no::<0>,
            "Whether pages will be retired at the next reboot. Until then, programs can still use \
             these pages, and further errors can occur.",
        ),
    ],
)];

pub(super) const REMAPPED_ROW_SECTIONS: &[Section] = &[
    with_title(
        "remapped_rows",
        "Rows of the device memory that fail can be replaced by spare rows: after several \
         single-bit errors in the row, or after one double-bit error. A pending replacement takes \
         effect when the GPU is reset.",
        &[
            row_field(
                "remapped_rows.correctable or remapped_rows.sbe",
                |row| format_remapped_rows(row, 0, 0),
                "The number of rows that were replaced because of single-bit errors.",
            ),
            field(
                "remapped_rows.correctable_inactive",
                Q::RemappedRowsV2,
                format_number::<1>,
                "The number of rows that were replaced because of single-bit errors, but whose \
                 replacement is not in use.",
            )
            .except(release::BRANCH_590),
            row_field(
                "remapped_rows.uncorrectable or remapped_rows.dbe",
                |row| format_remapped_rows(row, 2, 1),
                "The number of rows that were replaced because of a double-bit error.",
            ),
            field(
                "remapped_rows.uncorrectable_inactive",
                Q::RemappedRowsV2,
                format_number::<3>,
                "The number of rows that were replaced because of a double-bit error, but whose \
                 replacement is not in use.",
            )
            .except(release::BRANCH_590),
            field(
                "remapped_rows.pending",
                Q::RemappedRows,
                format_yes_no::<2>,
                "Whether rows will be replaced at the next reset.",
            ),
            field(
                "remapped_rows.failure",
                Q::RemappedRows,
                format_yes_no::<3>,
                "Whether the replacement of a row has ever failed.",
            ),
        ],
    ),
    with_title(
        "remapped_rows.histogram",
        "The numbers of memory banks by their remaining spare rows.",
        &[
            number_field(
                "remapped_rows.histogram.max",
                Q::RowRemapperHistogram,
                "The number of banks with all spare rows.",
            ),
            field(
                "remapped_rows.histogram.high",
                Q::RowRemapperHistogram,
                format_number::<1>,
                "The number of banks with most spare rows.",
            ),
            field(
                "remapped_rows.histogram.partial",
                Q::RowRemapperHistogram,
                format_number::<2>,
                "The number of banks with some spare rows.",
            ),
            field(
                "remapped_rows.histogram.low",
                Q::RowRemapperHistogram,
                format_number::<3>,
                "The number of banks with few spare rows.",
            ),
            field(
                "remapped_rows.histogram.none",
                Q::RowRemapperHistogram,
                format_number::<4>,
                "The number of banks without spare rows.",
            ),
        ],
    ),
];

/// Returns the number of retired pages. The answer contains two numbers per page: its timestamp and
/// its address.
fn format_page_count(answer: &Answer) -> Cell {
    let pages = answer.as_ref().map_err(|code| *code)?;
    Ok((pages.numbers().len() / 2).to_string())
}

/// Returns a count from the answer to [`Q::RemappedRowsV2`]. If the library lacks this query,
/// returns the corresponding count from [`Q::RemappedRows`].
fn format_remapped_rows(row: &Row<'_>, place: usize, older_place: usize) -> Cell {
    let count = match row.run_query(Q::RemappedRowsV2) {
        Err(Code::FUNCTION_NOT_FOUND) => read_number(&row.run_query(Q::RemappedRows), older_place),
        answer => read_number(&answer, place),
    };
    Ok(count?.to_string())
}
