//! Memory errors, and the repair of defective memory.

use super::super::{
    cached::{Answers, and_then, whole},
    error::absence,
    lanes::MEMORY_LOCATIONS,
};
use crate::{
    model::{Absence, Ecc, EccCounts, EccLocation, Reading, RemappedRows, RetiredPages, SpareRows},
    vendor::nvml::query::{Code, Query as Q},
};

/// The values of `nvmlMemoryErrorType_t`.
const CORRECTED: u32 = 0;
const UNCORRECTED: u32 = 1;

/// The values of `nvmlEccCounterType_t`.
const VOLATILE: u32 = 0;
const AGGREGATE: u32 = 1;

pub(super) fn errors(answers: Answers<'_>) -> Ecc {
    let count = |kind, counter| answers.whole::<u64>(Q::TotalEccErrors(kind, counter));
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

/// The names of the `nvmlMemoryLocation_t` values.
const LOCATIONS: [&str; 8] = [
    "l1_cache",
    "l2_cache",
    "device_memory",
    "register_file",
    "texture_memory",
    "texture_shm",
    "cbu",
    "sram",
];

/// The order of the locations: device memory and SRAM come first.
const ORDER: [u32; 8] = [2, 7, 0, 1, 3, 4, 5, 6];

/// Returns the counts of each location. If the board counts none, they are absent with
/// `NotSupported`.
fn by_location(answers: Answers<'_>, counter: u32) -> Reading<Vec<EccLocation>> {
    let mut places = Vec::new();
    for (place, location) in ORDER.map(|place| {
        (
            MEMORY_LOCATIONS.start.saturating_add(place),
            LOCATIONS[place as usize],
        )
    }) {
        let count = |kind| answers.whole::<u64>(Q::MemoryErrors(kind, counter, place));
        let (corrected, uncorrected) = (count(CORRECTED), count(UNCORRECTED));
        // Some locations count only one kind of error.
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
        places.push(EccLocation {
            location: location.to_owned(),
            corrected_total,
            uncorrected_total,
        });
    }
    if places.is_empty() {
        Reading::Absent(Absence::NotSupported)
    } else {
        Reading::Now(places)
    }
}

/// Returns `true` if the board lacks this counter. Some drivers report this as an invalid argument.
fn is_no_place(count: &Reading<u64>) -> bool {
    [Absence::NotSupported, absence(Code::INVALID_ARGUMENT)]
        .iter()
        .any(|reason| count.absence() == Some(reason))
}

pub(super) fn remapped_rows(answers: Answers<'_>) -> Reading<RemappedRows> {
    let count = |number: i128| u32::try_from(number).ok();
    let spare = answers
        .numbers::<5>(Q::RowRemapperHistogram)
        .value()
        .and_then(|banks| {
            let [max, high, partial, low, none] = banks.map(count);
            Some(SpareRows {
                max: max?,
                high: high?,
                partial: partial?,
                low: low?,
                none: none?,
            })
        });
    and_then(
        answers.numbers(Q::RemappedRows),
        |[correctable, uncorrectable, pending, failed]| {
            let rows =
                count(correctable)
                    .zip(count(uncorrectable))
                    .map(|(correctable, uncorrectable)| RemappedRows {
                        correctable,
                        uncorrectable,
                        pending: pending != 0,
                        failed: failed != 0,
                        spare,
                    });
            rows.ok_or(Absence::Unknown).into()
        },
    )
}

/// Returns the number of retired pages by `nvmlPageRetirementCause_t`. Each page in an answer has
/// two numbers, time and address.
pub(super) fn retired_pages(answers: Answers<'_>) -> Reading<RetiredPages> {
    let pages = |cause| {
        and_then(answers.value(Q::RetiredPages(cause)), |pages| {
            whole((pages.numbers().len() / 2) as i128)
        })
    };
    and_then(pages(0), |single_bit| {
        and_then(pages(1), |double_bit| {
            let pending = answers.flag(Q::RetiredPagesPending);
            pending.map(|pending| RetiredPages {
                single_bit,
                double_bit,
                pending,
            })
        })
    })
}
