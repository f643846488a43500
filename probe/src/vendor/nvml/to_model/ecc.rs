//! Conversion of the driver's answers about memory errors and memory repairs.

use super::{super::error::to_absence, TimedAnswers, and_then, convert_integer};
use crate::{
    model::{Absence, Ecc, EccCounts, EccLocation, Reading, RemappedRows, RetiredPages, SpareRows},
    vendor::nvml::{
        query::{Code, Query as Q},
        schedule::MEMORY_LOCATIONS,
    },
};

/// The `nvmlMemoryErrorType_t` for corrected errors. `UNCORRECTED` is for uncorrected errors.
const CORRECTED: u32 = 0;
const UNCORRECTED: u32 = 1;

/// The `nvmlEccCounterType_t` for volatile counters. `AGGREGATE` is for aggregate counters.
const VOLATILE: u32 = 0;
const AGGREGATE: u32 = 1;

pub(super) fn read_ecc_counts(answers: TimedAnswers<'_>) -> Ecc {
    let count = |kind, counter| answers.read_integer::<u64>(Q::TotalEccErrors(kind, counter));
    let totals = |counter| EccCounts {
        corrected_total: count(CORRECTED, counter),
        uncorrected_total: count(UNCORRECTED, counter),
    };
    Ecc {
        volatile: totals(VOLATILE),
        aggregate: totals(AGGREGATE),
        volatile_by_location: count_by_location(answers, VOLATILE),
        aggregate_by_location: count_by_location(answers, AGGREGATE),
    }
}

/// The names of the `nvmlMemoryLocation_t` values, in order.
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

/// The order in which locations are listed: device memory and SRAM come first.
const LOCATION_ORDER: [u32; 8] = [2, 7, 0, 1, 3, 4, 5, 6];

/// Returns the error counts of each memory location. They are absent with `NotSupported` if the
/// board counts no errors by location.
fn count_by_location(answers: TimedAnswers<'_>, counter: u32) -> Reading<Vec<EccLocation>> {
    let mut places = Vec::new();
    for (place, location) in LOCATION_ORDER.map(|place| {
        (
            MEMORY_LOCATIONS.start.saturating_add(place),
            LOCATIONS[place as usize],
        )
    }) {
        let count = |kind| answers.read_integer::<u64>(Q::MemoryErrors(kind, counter, place));
        let (corrected, uncorrected) = (count(CORRECTED), count(UNCORRECTED));
        // Some memory locations count only one of the two kinds of errors.
        let (corrected_total, uncorrected_total) = match (corrected.value(), uncorrected.value()) {
            (Some(corrected), Some(uncorrected)) => (*corrected, *uncorrected),
            (Some(corrected), None) if is_missing_counter(&uncorrected) => (*corrected, 0),
            (None, Some(uncorrected)) if is_missing_counter(&corrected) => (0, *uncorrected),
            (None, None) if is_missing_counter(&corrected) && is_missing_counter(&uncorrected) => {
                continue;
            }
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

/// Returns `true` if the board does not have this counter. Some drivers report a missing counter as
/// an invalid argument.
fn is_missing_counter(count: &Reading<u64>) -> bool {
    [Absence::NotSupported, to_absence(Code::INVALID_ARGUMENT)]
        .iter()
        .any(|reason| count.absence() == Some(reason))
}

pub(super) fn remapped_rows(answers: TimedAnswers<'_>) -> Reading<RemappedRows> {
    let count = |number: i128| u32::try_from(number).ok();
    let spare = answers
        .read_numbers::<5>(Q::RowRemapperHistogram)
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
        answers.read_numbers(Q::RemappedRows),
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

/// Returns the number of retired pages for each `nvmlPageRetirementCause_t`. An answer contains two
/// numbers per page: its time and its address.
pub(super) fn retired_pages(answers: TimedAnswers<'_>) -> Reading<RetiredPages> {
    let pages = |cause| {
        and_then(answers.get(Q::RetiredPages(cause)), |pages| {
            convert_integer((pages.numbers().len() / 2) as i128)
        })
    };
    and_then(pages(0), |single_bit| {
        and_then(pages(1), |double_bit| {
            let pending = answers.read_flag(Q::RetiredPagesPending);
            pending.map(|pending| RetiredPages {
                single_bit,
                double_bit,
                pending,
            })
        })
    })
}
