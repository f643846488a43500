//! The fields for the time and the GPU that all queries except `--query-gpu` have in common.

use gpumon_probe::vendor::nvml::query::Query;

use super::cell::{Cell, format_text};
use super::field::{Section, field, fields, row_field};
use super::row::Row;

pub(super) const COMMON_SECTIONS: &[Section] = &[fields(&[
    row_field("timestamp", format_timestamp, TIMESTAMP),
    field("gpu_name", Query::Name, format_text, NAME),
    field("gpu_bus_id", Query::BusId, format_text, BUS_ID),
    field("gpu_serial", Query::Serial, format_text, SERIAL),
    field("gpu_uuid", Query::Uuid, format_text, UUID),
])];

pub(super) const TIMESTAMP: &str =
    "The time of the query, in local time, as YYYY/MM/DD HH:MM:SS.msec.";
pub(super) const NAME: &str = "The product name of the GPU, in letters and digits. All products \
                               have it.";
pub(super) const BUS_ID: &str =
    "The PCI bus ID of the GPU, in hexadecimal: domain:bus:device.function.";
pub(super) const SERIAL: &str = "The serial number that is printed on the board, in letters and \
                                 digits. It is unique and never changes.";
pub(super) const UUID: &str = "The UUID of the GPU, in letters and digits. It is unique and never \
                               changes. It is not printed on the board.";

// All cell functions must return a `Result`, even if they cannot fail.
#[allow(clippy::unnecessary_wraps)]
pub(super) fn format_timestamp(row: &Row<'_>) -> Cell {
    Ok(row
        .gpu
        .context
        .now
        .strftime("%Y/%m/%d %H:%M:%S.%3f")
        .to_string())
}
