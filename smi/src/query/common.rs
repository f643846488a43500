//! The fields for the time and the GPU that all queries except `--query-gpu` share.

use gpumon_probe::vendor::nvml::query::Query;

use super::cell::{Cell, text};
use super::field::{Section, field, fields, row_field};
use super::row::Row;

pub(super) const SECTIONS: &[Section] = &[fields(&[
    row_field("timestamp", timestamp, TIMESTAMP),
    field("gpu_name", Query::Name, text, NAME),
    field("gpu_bus_id", Query::BusId, text, BUS_ID),
    field("gpu_serial", Query::Serial, text, SERIAL),
    field("gpu_uuid", Query::Uuid, text, UUID),
])];

pub(super) const TIMESTAMP: &str =
    "When this was read, written as YYYY/MM/DD HH:MM:SS.msec in local time.";
pub(super) const NAME: &str = "What the GPU is sold as, letters and digits. Every product has it.";
pub(super) const BUS_ID: &str =
    "Where on the PCI bus the GPU is, in hexadecimal: domain:bus:device.function.";
pub(super) const SERIAL: &str = "The serial number that is printed on the board, letters and \
                                 digits. It never changes, and no other board has it.";
pub(super) const UUID: &str = "The name that no other GPU has and that never changes, letters and \
                               digits. It is printed on no label of the board.";

// All functions for cells return a `Result`, even if they cannot fail.
#[allow(clippy::unnecessary_wraps)]
pub(super) fn timestamp(row: &Row<'_>) -> Cell {
    Ok(row
        .gpu
        .context
        .now
        .strftime("%Y/%m/%d %H:%M:%S.%3f")
        .to_string())
}
