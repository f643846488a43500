//! Numbers as people read them: three significant digits, one unit for each quantity.

use gpumon_probe::model::Reading;

const GIB: f64 = (1u64 << 30) as f64;

/// What stands where a reading is absent.
pub(super) const ABSENT: &str = "-";

/// `8.53`, `78.2`, `140`: GiB without the unit.
pub(super) fn gib(bytes: u64) -> String {
    three_digits(bytes as f64 / GIB)
}

/// `0.8`, `78.2`, `128.0`: GiB without the unit, for a column in which the points stand below each other.
pub(super) fn gib_in_column(bytes: u64) -> String {
    match bytes as f64 / GIB {
        gib if bytes > 0 && gib < 0.05 => "<0.1".to_owned(),
        gib => format!("{gib:.1}"),
    }
}

/// At most three significant digits, and no more than two after the point.
pub(super) fn three_digits(value: f64) -> String {
    match value.abs() {
        below if below < 9.995 => format!("{value:.2}"),
        below if below < 99.95 => format!("{value:.1}"),
        _ => format!("{value:.0}"),
    }
}

/// A whole number and its unit, or a dash.
pub(super) fn whole(reading: &Reading<f64>, unit: &str) -> String {
    reading.value().map_or_else(|| ABSENT.to_owned(), |value| format!("{value:.0} {unit}"))
}

/// `45s`, `12m`, `2h14`, `6d02`: how long something has been so.
pub(super) fn duration(ms: u64) -> String {
    let seconds = ms / 1000;
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3_600 => format!("{}m", seconds / 60),
        3_600..86_400 => format!("{}h{:02}", seconds / 3_600, seconds / 60 % 60),
        _ => format!("{}d{:02}", seconds / 86_400, seconds / 3_600 % 24),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_digits_at_every_size() {
        for (value, text) in
            [(0.0, "0.00"), (8.534, "8.53"), (9.996, "10.0"), (78.23, "78.2"), (99.96, "100"), (140.4, "140")]
        {
            assert_eq!(three_digits(value), text);
        }
    }

    #[test]
    fn a_column_keeps_its_points_aligned_and_something_is_never_nothing() {
        for (mib, text) in [(0, "0.0"), (20, "<0.1"), (860, "0.8"), (131_072, "128.0")] {
            assert_eq!(gib_in_column(mib << 20), text);
        }
    }

    #[test]
    fn durations_keep_two_units() {
        for (seconds, text) in [(0, "0s"), (59, "59s"), (60, "1m"), (3_599, "59m"), (8_040, "2h14"), (526_000, "6d02")]
        {
            assert_eq!(duration(seconds * 1000), text);
        }
    }
}
