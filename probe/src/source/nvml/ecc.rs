//! Memory errors, and what became of the memory that made them.

use nvml_wrapper::{
    Device,
    enum_wrappers::device::{EccCounter, MemoryError, MemoryLocation, RetirementCause},
    error::NvmlError,
};

use super::{ask::Asker, raw};
use crate::model::{Absence, Ecc, EccCounts, EccLocation, Reading, RemappedRows, RetiredPages, SpareRows};

/// All counts of errors; about 60 us.
pub(super) fn errors(device: &Device<'_>, asker: &mut Asker) -> Ecc {
    Ecc {
        volatile: totals(device, asker, EccCounter::Volatile, ["volatile corrected", "volatile uncorrected"]),
        aggregate: totals(device, asker, EccCounter::Aggregate, ["aggregate corrected", "aggregate uncorrected"]),
        volatile_by_location: asker.ask("volatile by location", || by_location(device, EccCounter::Volatile)),
        aggregate_by_location: asker.ask("aggregate by location", || by_location(device, EccCounter::Aggregate)),
    }
}

fn totals(device: &Device<'_>, asker: &mut Asker, lifetime: EccCounter, names: [&'static str; 2]) -> EccCounts {
    let [corrected, uncorrected] = names;
    EccCounts {
        corrected_total: asker.ask(corrected, || device.total_ecc_errors(MemoryError::Corrected, lifetime)),
        uncorrected_total: asker.ask(uncorrected, || device.total_ecc_errors(MemoryError::Uncorrected, lifetime)),
    }
}

/// The places that the board counts; not supported where it counts none.
fn by_location(device: &Device<'_>, lifetime: EccCounter) -> Result<Vec<EccLocation>, NvmlError> {
    const PLACES: [(MemoryLocation, &str); 8] = [
        (MemoryLocation::Device, "device_memory"),
        (MemoryLocation::SRAM, "sram"),
        (MemoryLocation::L1Cache, "l1_cache"),
        (MemoryLocation::L2Cache, "l2_cache"),
        (MemoryLocation::RegisterFile, "register_file"),
        (MemoryLocation::Texture, "texture_memory"),
        (MemoryLocation::Shared, "texture_shm"),
        (MemoryLocation::Cbu, "cbu"),
    ];
    let mut counted = Vec::new();
    for (place, name) in PLACES {
        let count = |error| device.memory_error_counter(error, lifetime, place);
        match (count(MemoryError::Corrected), count(MemoryError::Uncorrected)) {
            (
                Err(NvmlError::NotSupported | NvmlError::InvalidArg),
                Err(NvmlError::NotSupported | NvmlError::InvalidArg),
            ) => {}
            // Some places count one kind only, and have none of the other.
            (Err(NvmlError::NotSupported), Ok(uncorrected_total)) => {
                counted.push(EccLocation { location: name.to_owned(), corrected_total: 0, uncorrected_total });
            }
            (Ok(corrected_total), Err(NvmlError::NotSupported)) => {
                counted.push(EccLocation { location: name.to_owned(), corrected_total, uncorrected_total: 0 });
            }
            (corrected, uncorrected) => counted.push(EccLocation {
                location: name.to_owned(),
                corrected_total: corrected?,
                uncorrected_total: uncorrected?,
            }),
        }
    }
    if counted.is_empty() { Err(NvmlError::NotSupported) } else { Ok(counted) }
}

pub(super) fn remapped_rows(device: &Device<'_>, asker: &mut Asker) -> Reading<RemappedRows> {
    let spare = match asker.ask("row remapper histogram", || raw::row_histogram(device)) {
        Reading::Now(banks) | Reading::Earlier { value: banks, .. } => {
            let raw::RowHistogram { max, high, partial, low, none } = banks;
            Some(SpareRows { max, high, partial, low, none })
        }
        Reading::Absent(_) => None,
    };
    asker.ask("remapped rows", || raw::remapped_rows(device)).map(|(correctable, uncorrectable, pending, failed)| {
        RemappedRows { correctable, uncorrectable, pending, failed, spare }
    })
}

pub(super) fn retired_pages(device: &Device<'_>, asker: &mut Asker) -> Reading<RetiredPages> {
    let pending = asker.ask("retired pages pending", || device.are_pages_pending_retired());
    let mut count =
        |what, cause: RetirementCause| asker.ask(what, || device.retired_pages(cause)).map(|pages| pages.len() as u32);
    let single = count("single-bit retired pages", RetirementCause::MultipleSingleBitEccErrors);
    let double = count("double-bit retired pages", RetirementCause::DoubleBitEccError);
    match (single, double, pending) {
        (Reading::Now(single_bit), Reading::Now(double_bit), Reading::Now(pending)) => {
            Reading::Now(RetiredPages { single_bit, double_bit, pending })
        }
        (Reading::Absent(reason), _, _) | (_, Reading::Absent(reason), _) | (_, _, Reading::Absent(reason)) => {
            Reading::Absent(reason)
        }
        _ => Reading::Absent(Absence::Unknown),
    }
}
