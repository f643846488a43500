//! `--query-retired-pages`: the retired pages of the memory, those with single-bit errors first. A
//! board without retired pages has one row for each cause.

use gpumon_probe::vendor::nvml::query::{Code, Query};
use jiff::Timestamp;

use super::cell::{Absent, Cell};
use super::common;
use super::field::{fields, row_field};
use super::row::{Gpu, Item, Row, items};
use super::table::Table;

pub(super) static TABLE: Table = Table {
    subjects: &[
        common::SECTIONS,
        &[fields(&[
            row_field(
                "retired_pages.address",
                |row| Ok(format!("0x{:016x}", row.number_at(2)?)),
                "Where the page is. With ECC turned on or off it can be another address.",
            ),
            row_field(
                "retired_pages.timestamp",
                time,
                "When the page was taken out of use.",
            ),
            row_field(
                "retired_pages.cause",
                page_cause,
                "Why the page was taken out of use, one of two:
 - Double Bit ECC - an error of two bits, which cannot be corrected.
 - Single Bit ECC - several errors of a single bit.",
            ),
        ])],
    ],
    items: list_pages,
};

/// Returns three numbers for each page: the `nvmlPageRetirementCause_t`, the time in µs (0 if
/// unknown) and the address.
fn list_pages(gpu: &Gpu<'_>) -> Vec<Item> {
    let of_cause = |cause: u32| items::<2>(&[cause.into()], gpu.ask(Query::RetiredPages(cause)));
    [0, 1].into_iter().flat_map(of_cause).collect()
}

fn page_cause(row: &Row<'_>) -> Cell {
    let causes = ["Single Bit ECC", "Double Bit ECC"];
    Ok(causes[row.number_at(0)? as usize].to_owned())
}

fn time(row: &Row<'_>) -> Cell {
    let microseconds = match row.number_at(1)? {
        0 => return Err(Absent::not_available()),
        known => i64::try_from(known).map_err(|_| Code::UNKNOWN)?,
    };
    let at = Timestamp::from_microsecond(microseconds).map_err(|_| Code::UNKNOWN)?;
    let local = at.to_zoned(row.gpu.context.now.time_zone().clone());
    Ok(local.strftime("%a %b %e %H:%M:%S %Y").to_string())
}
