//! Memory errors, and what became of the memory that made them.

use super::super::{
    cached::{Answers, and_then},
    error::absence,
    lanes::MEMORY_LOCATIONS,
};
use crate::{
    model::{Absence, Ecc, EccCounts, EccLocation, Reading, RemappedRows, RetiredPages, SpareRows},
    vendor::nvml::query::{Code, Query as Q},
};

/// `nvmlMemoryErrorType_t`.
const CORRECTED: u32 = 0;
const UNCORRECTED: u32 = 1;

/// `nvmlEccCounterType_t`.
const VOLATILE: u32 = 0;
const AGGREGATE: u32 = 1;

pub(super) fn errors(answers: Answers<'_>) -> Ecc {
    let count = |kind, counter| answers.number(Q::TotalEccErrors(kind, counter)).map(|count| count as u64);
    let totals = |counter| EccCounts {
        corrected_total: count(CORRECTED, counter),
        uncorrected_total: count(UNCORRECTED, counter),
    };
    Ecc {
        volatile: totals(VOLATILE),
        aggregate: totals(AGGREGATE),
        volatile_by_location: by_location(answers, VOLATILE),
        aggregate_by_location: by_location(answers, AGGREGATE),
    }
}

/// `nvmlMemoryLocation_t`.
pub(in crate::vendor) const LOCATIONS: [&str; 8] =
    ["l1_cache", "l2_cache", "device_memory", "register_file", "texture_memory", "texture_shm", "cbu", "sram"];

/// Device memory and SRAM first, then the other places.
const ORDER: [usize; 8] = [2, 7, 0, 1, 3, 4, 5, 6];

/// The places that the board counts; not supported where it counts none.
fn by_location(answers: Answers<'_>, counter: u32) -> Reading<Vec<EccLocation>> {
    let mut places = Vec::new();
    for place in ORDER.map(|place| MEMORY_LOCATIONS.start + place as u32) {
        let count = |kind| answers.number(Q::MemoryErrors(kind, counter, place)).map(|count| count as u64);
        let (corrected, uncorrected) = (count(CORRECTED), count(UNCORRECTED));
        // Some places count one kind only, and have none of the other.
        let (corrected_total, uncorrected_total) = match (corrected.value(), uncorrected.value()) {
            (Some(corrected), Some(uncorrected)) => (*corrected, *uncorrected),
            (Some(corrected), None) if is_no_place(&uncorrected) => (*corrected, 0),
            (None, Some(uncorrected)) if is_no_place(&corrected) => (0, *uncorrected),
            (None, None) if is_no_place(&corrected) && is_no_place(&uncorrected) => continue,
            _ => {
                let reason = corrected.absence().or(uncorrected.absence());
                return Reading::Absent(reason.cloned().unwrap_or(Absence::Unknown));
            }
        };
        places.push(EccLocation { location: LOCATIONS[place as usize].to_owned(), corrected_total, uncorrected_total });
    }
    if places.is_empty() { Reading::Absent(Absence::NotSupported) } else { Reading::Now(places) }
}

/// Whether the board has no such counter, which some drivers say by "invalid argument".
fn is_no_place(count: &Reading<u64>) -> bool {
    [Absence::NotSupported, absence(Code::INVALID_ARGUMENT)].iter().any(|reason| count.absence() == Some(reason))
}

pub(super) fn remapped_rows(answers: Answers<'_>) -> Reading<RemappedRows> {
    let banks = answers.numbers(Q::RowRemapperHistogram);
    let spare = banks.value().map(|banks| {
        let [max, high, partial, low, none] = banks.map(|count| count as u32);
        SpareRows { max, high, partial, low, none }
    });
    answers.numbers(Q::RemappedRows).map(|[correctable, uncorrectable, pending, failed]| RemappedRows {
        correctable: correctable as u32,
        uncorrectable: uncorrectable as u32,
        pending: pending != 0,
        failed: failed != 0,
        spare,
    })
}

/// `nvmlPageRetirementCause_t` numbers its causes; each page is a time and an address.
pub(super) fn retired_pages(answers: Answers<'_>) -> Reading<RetiredPages> {
    let pages = |cause| answers.value(Q::RetiredPages(cause)).map(|pages| (pages.numbers().len() / 2) as u32);
    and_then(pages(0), |single_bit| {
        and_then(pages(1), |double_bit| {
            let pending = answers.flag(Q::RetiredPagesPending);
            pending.map(|pending| RetiredPages { single_bit, double_bit, pending })
        })
    })
}
