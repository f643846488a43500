//! Text of limited width, and numbers in a readable format.

use gpumon_probe::{
    local_time::time_zone,
    model::{Process, Reading},
    units::format_decimal_size,
};

use crate::terminal::units::format_optional;
pub(super) use crate::terminal::{
    text::{UNLIMITED_LAYOUT, align_left, align_right, cut, fit_pieces, make_printable, wrap},
    units::ABSENT,
};
use crate::{table::processes::ProcessLabel, time_spans::to_zoned};

/// Describes a process by its program or notebook and by its job, pod or container.
pub(super) fn describe_process(process: &Process, notebook: Option<&str>) -> Option<String> {
    ProcessLabel::from_process(process, notebook, UNLIMITED_LAYOUT).map(|what| what.full_text())
}

pub(super) fn fit_process_description(
    process: &Process,
    notebook: Option<&str>,
    columns: usize,
) -> Option<String> {
    ProcessLabel::from_process(process, notebook, UNLIMITED_LAYOUT)
        .map(|what| what.fit_to_width(columns, UNLIMITED_LAYOUT))
}

/// Formats a rate, such as `1.24 GB/s`. The units are decimal, as is common for links.
pub(super) fn format_rate(bytes_per_second: f64) -> String {
    format!("{}/s", format_decimal_size(bytes_per_second))
}

/// Formats the value of a reading, or the reason for its absence.
pub(super) fn format_reading<T>(reading: &Reading<T>, format: impl FnOnce(&T) -> String) -> String {
    match reading {
        Reading::Now(value) | Reading::Earlier { value, .. } => format(value),
        Reading::Absent(reason) => reason.to_string(),
    }
}

/// Formats the value of a reading, or returns a dash if it is absent.
pub(super) fn format_or_dash<T>(reading: &Reading<T>, format: impl FnOnce(&T) -> String) -> String {
    format_optional(reading.value(), format)
}

/// Formats a reading, such as `64 %`, or returns a dash if it is absent.
pub(super) fn format_percent(reading: &Reading<f64>) -> String {
    format_or_dash(reading, |percent| format!("{percent:.0} %"))
}

/// Formats a time such as `10:42:07` in the local time zone.
pub(super) fn format_time(at_ms: u64) -> String {
    format_local_time(at_ms, "%H:%M:%S")
}

/// Formats a time such as `10:42` in the local time zone.
pub(super) fn format_hour_and_minute(at_ms: u64) -> String {
    format_local_time(at_ms, "%H:%M")
}

/// Formats a time such as `Mar 01 10:42` in the local time zone.
pub(super) fn format_day_and_minute(at_ms: u64) -> String {
    format_local_time(at_ms, "%b %d %H:%M")
}

/// Formats a chart's time range, such as `2 min`, `6 h`, or `30 d`.
pub(super) fn format_chart_range(span_ms: u64) -> String {
    match span_ms / 1000 {
        seconds if seconds % (24 * 3600) == 0 => format!("{} d", seconds / (24 * 3600)),
        seconds if seconds % 3600 == 0 => format!("{} h", seconds / 3600),
        seconds => format!("{} min", seconds / 60),
    }
}

/// Formats a time such as `2026-03-01 10:42:07` in the local time zone.
pub(super) fn format_date_and_time(at_ms: u64) -> String {
    format_local_time(at_ms, "%Y-%m-%d %H:%M:%S")
}

fn format_local_time(at_ms: u64, format: &str) -> String {
    format_optional(to_zoned(at_ms, &time_zone()), |moment| {
        moment.strftime(format).to_string()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_keep_three_digits() {
        assert_eq!(
            [
                format_rate(12.0),
                format_rate(1_240_000.0),
                format_rate(64.2e9)
            ],
            ["12 B/s", "1.24 MB/s", "64.2 GB/s"]
        );
    }
}
