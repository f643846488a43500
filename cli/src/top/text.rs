//! Text of a limited width, and numbers in a readable form.

use gpumon_probe::{
    local_time::time_zone,
    model::{Process, Reading},
    units::decimal_size,
};

pub(super) use crate::terminal::{
    text::{ANY_ROOM, align_left, align_right, cut, fit_pieces, printable, wrap},
    units::ABSENT,
};
use crate::{moment::zoned, table::process_label::ProcessLabel};

/// Returns a short description of a process: its program or notebook, and its environment.
pub(super) fn what(process: &Process, notebook: Option<&str>) -> Option<String> {
    ProcessLabel::of(process, notebook, ANY_ROOM).map(|what| what.whole())
}

pub(super) fn fitted_what(
    process: &Process,
    notebook: Option<&str>,
    columns: usize,
) -> Option<String> {
    ProcessLabel::of(process, notebook, ANY_ROOM).map(|what| what.fit_in(columns, ANY_ROOM))
}

/// Formats a rate such as `1.24 GB/s`, in the decimal units that are common for links.
pub(super) fn rate(bytes_per_second: f64) -> String {
    format!("{}/s", decimal_size(bytes_per_second))
}

/// Returns a reading's value, or the reason why there is none.
pub(super) fn format_reading<T>(reading: &Reading<T>, format: impl FnOnce(&T) -> String) -> String {
    match (reading.value(), reading.absence()) {
        (Some(value), _) => format(value),
        (None, Some(reason)) => reason.to_string(),
        (None, None) => ABSENT.to_owned(),
    }
}

/// Returns a reading's value, or a dash.
pub(super) fn shown<T>(reading: &Reading<T>, format: impl FnOnce(&T) -> String) -> String {
    reading.value().map_or_else(|| ABSENT.to_owned(), format)
}

/// Formats a reading such as `64 %`, or returns a dash.
pub(super) fn percent(reading: &Reading<f64>) -> String {
    shown(reading, |percent| format!("{percent:.0} %"))
}

/// Formats a time such as `10:42:07` in the local time zone.
pub(super) fn clock(at_ms: u64) -> String {
    local(at_ms, "%H:%M:%S")
}

/// Formats a time such as `10:42` in the local time zone.
pub(super) fn hour_and_minute(at_ms: u64) -> String {
    local(at_ms, "%H:%M")
}

/// Formats a time such as `Mar 01 10:42` in the local time zone.
pub(super) fn day_and_minute(at_ms: u64) -> String {
    local(at_ms, "%b %d %H:%M")
}

/// Formats a chart's time range, such as `2 min`, `6 h`, or `30 d`.
pub(super) fn range(span_ms: u64) -> String {
    match span_ms / 1000 {
        seconds if seconds % (24 * 3600) == 0 => format!("{} d", seconds / (24 * 3600)),
        seconds if seconds % 3600 == 0 => format!("{} h", seconds / 3600),
        seconds => format!("{} min", seconds / 60),
    }
}

/// Formats a time such as `2026-03-01 10:42:07` in the local time zone.
pub(super) fn date_and_clock(at_ms: u64) -> String {
    local(at_ms, "%Y-%m-%d %H:%M:%S")
}

fn local(at_ms: u64, format: &str) -> String {
    zoned(at_ms, &time_zone()).map_or_else(
        || ABSENT.to_owned(),
        |moment| moment.strftime(format).to_string(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_keep_three_digits() {
        assert_eq!(
            [rate(12.0), rate(1_240_000.0), rate(64.2e9)],
            ["12 B/s", "1.24 MB/s", "64.2 GB/s"]
        );
    }
}
