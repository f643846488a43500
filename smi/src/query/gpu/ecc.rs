//! Encryption and error correction of the memory, and the errors that it met.

use gpumon_probe::vendor::nvml::query::Query as Q;

use super::super::cell::{Cell, enabled, number, yes};
use super::super::field::{Section, field};
use super::super::row::Row;

// `nvmlMemoryErrorType_t`.
const CORRECTED: u32 = 0;
const UNCORRECTED: u32 = 1;

// `nvmlEccCounterType_t`.
const VOLATILE: u32 = 0;
const AGGREGATE: u32 = 1;

// `nvmlMemoryLocation_t`.
const L1: u32 = 0;
const L2: u32 = 1;
const BOARD: u32 = 2;
const REGISTERS: u32 = 3;
const TEXTURE: u32 = 4;
const CBU: u32 = 6;
const SRAM: u32 = 7;

const IN_BOARD: &str = "Errors in the board's memory.";
const IN_REGISTERS: &str = "Errors in the register files.";
const IN_L1: &str = "Errors in the L1 caches.";
const IN_L2: &str = "Errors in the L2 cache.";
const IN_TEXTURE: &str = "Parity errors in the texture memory.";
const IN_CBU: &str = "Parity errors in the CBU, which handles branches.";
const IN_SRAM: &str = "Errors in all memories within the chip.";
const IN_ALL: &str = "Errors in the whole chip.";

/// The fields.
pub(super) const SECTIONS: &[Section<()>] = &[
    Section {
        title: Some((
            "dramEncryption.mode",
            "Enabled where the memory is encrypted, Disabled where not. A change takes a reboot. It needs \
             version 1.0 of the infoROM's object for it.",
        )),
        fields: &[
            field("dramEncryption.mode.current", "Whether it is encrypted now.", |row| {
                enabled(row.ask(Q::DramEncryptionMode), 0)
            }),
            field("dramEncryption.mode.pending", "Whether it will be after the next reboot.", |row| {
                enabled(row.ask(Q::DramEncryptionMode), 1)
            }),
        ],
    },
    Section {
        title: Some((
            "ecc.mode",
            "Enabled where errors of the memory are corrected, Disabled where not. A change takes a \
             reboot. It needs version 1.0 of the infoROM's object for it.",
        )),
        fields: &[
            field("ecc.mode.current", "Whether they are corrected now.", |row| enabled(row.ask(Q::EccMode), 0)),
            field("ecc.mode.pending", "Whether they will be after the next reboot.", |row| {
                enabled(row.ask(Q::EccMode), 1)
            }),
        ],
    },
    Section {
        title: Some((
            "ecc.errors",
            "How often memory was found to be wrong. An error of one bit is corrected, and nothing is \
             lost by it; one of two bits is only noticed. In texture memory reading again can help, or \
             not. Volatile counts begin with the loading of the driver, aggregate ones are those of the \
             board's whole life. What an error of two bits does to a program is told by NVIDIA's \
             documents on ECC.",
        )),
        fields: &[
            field("ecc.errors.corrected.volatile.device_memory", IN_BOARD, errors::<CORRECTED, VOLATILE, BOARD>),
            field("ecc.errors.corrected.volatile.dram", IN_BOARD, errors::<CORRECTED, VOLATILE, BOARD>),
            field(
                "ecc.errors.corrected.volatile.register_file",
                IN_REGISTERS,
                errors::<CORRECTED, VOLATILE, REGISTERS>,
            ),
            field("ecc.errors.corrected.volatile.l1_cache", IN_L1, errors::<CORRECTED, VOLATILE, L1>),
            field("ecc.errors.corrected.volatile.l2_cache", IN_L2, errors::<CORRECTED, VOLATILE, L2>),
            field("ecc.errors.corrected.volatile.texture_memory", IN_TEXTURE, errors::<CORRECTED, VOLATILE, TEXTURE>),
            field("ecc.errors.corrected.volatile.cbu", IN_CBU, errors::<CORRECTED, VOLATILE, CBU>),
            field("ecc.errors.corrected.volatile.sram", IN_SRAM, errors::<CORRECTED, VOLATILE, SRAM>),
            field("ecc.errors.corrected.volatile.total", IN_ALL, all_errors::<CORRECTED, VOLATILE>),
            field("ecc.errors.corrected.aggregate.device_memory", IN_BOARD, errors::<CORRECTED, AGGREGATE, BOARD>),
            field("ecc.errors.corrected.aggregate.dram", IN_BOARD, errors::<CORRECTED, AGGREGATE, BOARD>),
            field(
                "ecc.errors.corrected.aggregate.register_file",
                IN_REGISTERS,
                errors::<CORRECTED, AGGREGATE, REGISTERS>,
            ),
            field("ecc.errors.corrected.aggregate.l1_cache", IN_L1, errors::<CORRECTED, AGGREGATE, L1>),
            field("ecc.errors.corrected.aggregate.l2_cache", IN_L2, errors::<CORRECTED, AGGREGATE, L2>),
            field("ecc.errors.corrected.aggregate.texture_memory", IN_TEXTURE, errors::<CORRECTED, AGGREGATE, TEXTURE>),
            field("ecc.errors.corrected.aggregate.cbu", IN_CBU, errors::<CORRECTED, AGGREGATE, CBU>),
            field("ecc.errors.corrected.aggregate.sram", IN_SRAM, errors::<CORRECTED, AGGREGATE, SRAM>),
            field("ecc.errors.corrected.aggregate.total", IN_ALL, all_errors::<CORRECTED, AGGREGATE>),
            field("ecc.errors.uncorrected.volatile.device_memory", IN_BOARD, errors::<UNCORRECTED, VOLATILE, BOARD>),
            field("ecc.errors.uncorrected.volatile.dram", IN_BOARD, errors::<UNCORRECTED, VOLATILE, BOARD>),
            field(
                "ecc.errors.uncorrected.volatile.register_file",
                IN_REGISTERS,
                errors::<UNCORRECTED, VOLATILE, REGISTERS>,
            ),
            field("ecc.errors.uncorrected.volatile.l1_cache", IN_L1, errors::<UNCORRECTED, VOLATILE, L1>),
            field("ecc.errors.uncorrected.volatile.l2_cache", IN_L2, errors::<UNCORRECTED, VOLATILE, L2>),
            field(
                "ecc.errors.uncorrected.volatile.texture_memory",
                IN_TEXTURE,
                errors::<UNCORRECTED, VOLATILE, TEXTURE>,
            ),
            field("ecc.errors.uncorrected.volatile.cbu", IN_CBU, errors::<UNCORRECTED, VOLATILE, CBU>),
            field("ecc.errors.uncorrected.volatile.sram", IN_SRAM, errors::<UNCORRECTED, VOLATILE, SRAM>),
            field("ecc.errors.uncorrected.volatile.total", IN_ALL, all_errors::<UNCORRECTED, VOLATILE>),
            field("ecc.errors.uncorrected.aggregate.device_memory", IN_BOARD, errors::<UNCORRECTED, AGGREGATE, BOARD>),
            field("ecc.errors.uncorrected.aggregate.dram", IN_BOARD, errors::<UNCORRECTED, AGGREGATE, BOARD>),
            field(
                "ecc.errors.uncorrected.aggregate.register_file",
                IN_REGISTERS,
                errors::<UNCORRECTED, AGGREGATE, REGISTERS>,
            ),
            field("ecc.errors.uncorrected.aggregate.l1_cache", IN_L1, errors::<UNCORRECTED, AGGREGATE, L1>),
            field("ecc.errors.uncorrected.aggregate.l2_cache", IN_L2, errors::<UNCORRECTED, AGGREGATE, L2>),
            field(
                "ecc.errors.uncorrected.aggregate.texture_memory",
                IN_TEXTURE,
                errors::<UNCORRECTED, AGGREGATE, TEXTURE>,
            ),
            field("ecc.errors.uncorrected.aggregate.cbu", IN_CBU, errors::<UNCORRECTED, AGGREGATE, CBU>),
            field("ecc.errors.uncorrected.aggregate.sram", IN_SRAM, errors::<UNCORRECTED, AGGREGATE, SRAM>),
            field("ecc.errors.uncorrected.aggregate.total", IN_ALL, all_errors::<UNCORRECTED, AGGREGATE>),
            field(
                "ecc.errors.uncorrected.volatile.sram.parity",
                "Parity errors within the chip since the driver was loaded, each counted once.",
                in_chip::<3>,
            ),
            field(
                "ecc.errors.uncorrected.volatile.sram.secded",
                "Errors within the chip that SEC-DED found since the driver was loaded, each counted once.",
                in_chip::<4>,
            ),
            field(
                "ecc.errors.uncorrected.aggregate.sram.parity",
                "Parity errors within the chip ever, each counted once.",
                in_chip::<0>,
            ),
            field(
                "ecc.errors.uncorrected.aggregate.sram.secded",
                "Errors within the chip that SEC-DED ever found, each counted once.",
                in_chip::<1>,
            ),
            field(
                "ecc.errors.uncorrected.aggregate.sram.thresholdExceeded",
                "Whether there were more errors within the chip than it should ever have.",
                |row| yes(row.ask(Q::SramEccErrors), 11),
            ),
            field(
                "ecc.errors.uncorrected.aggregate.sram.l2",
                "Errors in the L2 cache ever, each counted once.",
                in_chip::<6>,
            ),
            field(
                "ecc.errors.uncorrected.aggregate.sram.sm",
                "Errors in multiprocessors ever, each counted once.",
                in_chip::<7>,
            ),
            field(
                "ecc.errors.uncorrected.aggregate.sram.mcu",
                "Errors in microcontrollers ever, each counted once.",
                in_chip::<9>,
            ),
            field("ecc.errors.uncorrected.aggregate.sram.pcie", "Errors in the PCIe unit ever.", in_chip::<8>),
            field(
                "ecc.errors.uncorrected.aggregate.sram.other",
                "Errors ever within the chip but in none of L2 cache, multiprocessors, microcontrollers and \
                 PCIe unit, each counted once.",
                in_chip::<10>,
            ),
        ],
    },
];

fn errors<const KIND: u32, const COUNTER: u32, const PLACE: u32>(row: &Row<'_, ()>) -> Cell {
    number(row.ask(Q::MemoryErrors(KIND, COUNTER, PLACE)), 0)
}

fn all_errors<const KIND: u32, const COUNTER: u32>(row: &Row<'_, ()>) -> Cell {
    number(row.ask(Q::TotalEccErrors(KIND, COUNTER)), 0)
}

/// One of the counts of [`Q::SramEccErrors`].
fn in_chip<const PLACE: usize>(row: &Row<'_, ()>) -> Cell {
    number(row.ask(Q::SramEccErrors), PLACE)
}
