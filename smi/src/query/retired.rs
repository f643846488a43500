//! The option `--query-retired-pages`, which lists retired memory pages. Pages with single-bit
//! errors come first. A board without retired pages has one row for each cause.

use gpumon_probe::vendor::nvml::query::{Code, Query};
use jiff::Timestamp;

use super::cell::{Absent, Cell};
use super::common;
use super::field::{fields, row_field};
use super::row::{Gpu, Item, Row, split_items};
use super::table::Table;

pub(super) static RETIRED_PAGES: Table = Table {
    subjects: &[
        common::COMMON_SECTIONS,
        &[fields(&[
            row_field(
                "retired_pages.address",
                |row| Ok(format!("0x{:016x}", row.number_at(2)?)),
                "The address of the page. It can change when ECC is enabled or disabled.",
            ),
            row_field(
                "retired_pages.timestamp",
                format_time,
                "The time at which the page was retired.",
            ),
            row_field(
                "retired_pages.cause",
                format_cause,
                "The reason why the page was retired:\n - Double Bit ECC - one double-bit error, \
                 which cannot be corrected.\n - Single Bit ECC - several single-bit errors.",
            ),
        ])],
    ],
    items: list_pages,
};

/// Returns three numbers for each page: the `nvmlPageRetirementCause_t`, the time in µs (0 if
/// unknown), and the address.
fn list_pages(gpu: &Gpu<'_>) -> Vec<Item> {
    let of_cause =
        |cause: u32| split_items::<2>(&[cause.into()], gpu.run_query(Query::RetiredPages(cause)));
    [0, 1].into_iter().flat_map(of_cause).collect()
}

fn format_cause(row: &Row<'_>) -> Cell {
    let causes = ["Single Bit ECC", "Double Bit ECC"];
    Ok(causes[row.number_at(0)? as usize].to_owned())
}

fn format_time(row: &Row<'_>) -> Cell {
    let microseconds = match row.number_at(1)? {
        0 => return Err(Absent::new_not_available()),
        known => i64::try_from(known).map_err(|_| Code::UNKNOWN)?,
    };
    let at = Timestamp::from_microsecond(microseconds).map_err(|_| Code::UNKNOWN)?;
    let local = at.to_zoned(row.gpu.context.now.time_zone().clone());
    Ok(local.strftime("%a %b %e %H:%M:%S %Y").to_string())
}
