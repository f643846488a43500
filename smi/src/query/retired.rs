//! `--query-retired-pages`: pages of memory that were taken out of use, single-bit errors first. A board that has no
//! such pages says so in one row for each cause.

use gpumon_probe::vendor::nvml::query::{Code, Query};
use jiff::Timestamp;

use super::cell::{Absent, Cell};
use super::common::Common;
use super::field::{computed, untitled};
use super::row::{Gpu, Row};
use super::table::Table;

pub(super) static TABLE: Table<Page> = Table {
    subjects: &[
        Common::<Page>::SECTIONS,
        &[untitled(&[
            computed(
                "retired_pages.address",
                |row: &Row<'_, Page>| Ok(format!("0x{:016x}", row.item.known?.address)),
                "Where the page is. With ECC turned on or off it can be another address.",
            ),
            computed(
                "retired_pages.timestamp",
                time,
                "When the page was taken out of use.",
            ),
            computed(
                "retired_pages.cause",
                |row: &Row<'_, Page>| Ok(row.item.cause.to_owned()),
                "Why the page was taken out of use, one of two:
 - Double Bit ECC - an error of two bits, which cannot be corrected.
 - Single Bit ECC - several errors of a single bit.",
            ),
        ])],
    ],
    items: pages,
};

/// `nvmlPageRetirementCause_t`, in words.
const CAUSES: [(u32, &str); 2] = [(0, "Single Bit ECC"), (1, "Double Bit ECC")];

/// A page, or why the pages of this cause are not known.
pub(super) struct Page {
    cause: &'static str,
    known: Result<Known, Code>,
}

#[derive(Clone, Copy)]
struct Known {
    /// When it was retired, in us; 0 where the driver does not know it.
    at_us: i128,
    address: i128,
}

fn pages(gpu: &Gpu<'_>) -> Vec<Page> {
    let of_cause = |(number, cause)| match gpu.ask(Query::RetiredPages(number)) {
        Ok(list) => {
            let page = |[at_us, address]: &[i128; 2]| Page {
                cause,
                known: Ok(Known {
                    at_us: *at_us,
                    address: *address,
                }),
            };
            list.numbers().as_chunks().0.iter().map(page).collect()
        }
        Err(code) => vec![Page {
            cause,
            known: Err(code),
        }],
    };
    CAUSES.into_iter().flat_map(of_cause).collect()
}

fn time(row: &Row<'_, Page>) -> Cell {
    let microseconds = match row.item.known?.at_us {
        0 => return Err(Absent::not_available()),
        known => i64::try_from(known).map_err(|_| Code::UNKNOWN)?,
    };
    let at = Timestamp::from_microsecond(microseconds).map_err(|_| Code::UNKNOWN)?;
    let local = at.to_zoned(row.gpu.context.now.time_zone().clone());
    Ok(local.strftime("%a %b %e %H:%M:%S %Y").to_string())
}
