//! Formatting of numbers for display, and parsing of amounts. [`amount`] can parse everything that
//! this module formats.

mod amount;

use std::time::Duration;

pub use self::amount::{AcceptedAmounts, Amount, parse_duration, unit_names};

const KIB: f64 = 1024.0;
const MIB: f64 = KIB * KIB;
const GIB: f64 = KIB * MIB;

/// Formats at most three significant digits, and at most two decimal places.
pub fn format_three_digits(value: f64) -> String {
    match value.abs() {
        below if below < 9.995 => format!("{value:.2}"),
        below if below < 99.95 => format!("{value:.1}"),
        _ => format!("{value:.0}"),
    }
}

/// Rounds to three significant digits.
pub fn round_to_three_digits(value: f64) -> f64 {
    // A number in this format can always be parsed.
    format!("{value:.2e}").parse().unwrap_or(value)
}

/// Formats bytes in powers of 1024: `78.2 GiB`, `300 MiB`.
pub fn format_byte_size(bytes: f64) -> String {
    match bytes {
        few if few < KIB => format!("{few:.0} B"),
        few if few < MIB => format!("{} KiB", format_three_digits(few / KIB)),
        few if few < GIB => format!("{} MiB", format_three_digits(few / MIB)),
        many => format!("{} GiB", format_three_digits(many / GIB)),
    }
}

/// Formats a number in the first unit in which it is below 1000, or else in the last unit. Each
/// unit is a thousand times the previous one: `850 Wh`, `12.3 kWh`.
pub fn format_scaled(mut value: f64, units: &[&str]) -> String {
    let mut units = units.iter();
    let mut unit = units.next().copied().unwrap_or_default();
    for larger in units {
        if value < 1e3 {
            break;
        }
        (value, unit) = (value / 1e3, larger);
    }
    format!("{} {unit}", format_three_digits(value))
}

/// Formats bytes in powers of 1000, which vendors use for disks and links: `512 B`, `1.24 GB`.
pub fn format_decimal_size(bytes: f64) -> String {
    if bytes < 1e3 {
        format!("{bytes:.0} B")
    } else {
        format_scaled(bytes / 1e3, &["kB", "MB", "GB"])
    }
}

/// Formats a duration in its two largest units: `45s`, `12m10s`, `2h14m`.
pub fn format_short_duration(time: Duration) -> String {
    let seconds = time.as_secs();
    match (seconds / 3600, seconds / 60 % 60, seconds % 60) {
        (0, 0, seconds) => format!("{seconds}s"),
        (0, minutes, 0) => format!("{minutes}m"),
        (0, minutes, seconds) => format!("{minutes}m{seconds:02}s"),
        (hours, 0, _) => format!("{hours}h"),
        (hours, minutes, _) => format!("{hours}h{minutes:02}m"),
    }
}

/// Joins items as in `1, 2 and 3`.
pub fn join_list(items: &[String]) -> String {
    match items {
        [all @ .., before, last] => [all, &[format!("{before} and {last}")]].concat().join(", "),
        _ => items.concat(),
    }
}

/// Formats a duration in milliseconds: `45 s`, `26 min`, `3.5 h`, `6 days`.
pub fn format_duration(ms: u64) -> String {
    let minutes = ms / 60_000;
    match minutes {
        0 => format!("{} s", ms / 1000),
        1..120 => format!("{minutes} min"),
        120..2_880 => format!("{:.1} h", minutes as f64 / 60.0),
        _ => format!("{} days", minutes / 1_440),
    }
}

/// Formats a duration for a forecast: in steps of 10 s below a minute, otherwise in whole minutes.
pub fn format_approximate_duration(ms: u64) -> String {
    if ms < 55_000 {
        format_duration(ms.div_ceil(10_000).max(1) * 10_000)
    } else {
        format_duration((ms + 30_000) / 60_000 * 60_000)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_digits_are_kept_at_every_size() {
        for (value, text) in [
            (0.0, "0.00"),
            (8.534, "8.53"),
            (9.996, "10.0"),
            (78.23, "78.2"),
            (99.96, "100"),
            (140.4, "140"),
        ] {
            assert_eq!(format_three_digits(value), text);
        }
    }

    #[test]
    fn number_is_rounded_to_three_digits() {
        let rounded = [0.0, 12.3456, -6123.0, 0.000_123_456, 999_999.0]
            .map(|value| round_to_three_digits(value).to_string());
        assert_eq!(rounded, ["0", "12.3", "-6120", "0.000123", "1000000"]);
    }

    #[test]
    fn byte_size_has_three_digits() {
        let sizes = [
            0.0,
            40.0 * MIB,
            300.0 * MIB,
            1023.0 * MIB,
            1.5 * GIB,
            78.25 * GIB,
        ]
        .map(format_byte_size);
        assert_eq!(
            sizes,
            [
                "0 B", "40.0 MiB", "300 MiB", "1023 MiB", "1.50 GiB", "78.2 GiB"
            ]
        );
    }

    #[test]
    fn energy_and_sizes_are_scaled_by_thousands() {
        let energy =
            [0.5, 850.0, 12_300.0, 5e10].map(|wh| format_scaled(wh, &["Wh", "kWh", "MWh"]));
        assert_eq!(energy, ["0.50 Wh", "850 Wh", "12.3 kWh", "50000 MWh"]);
        let sizes = [512.0, 1_240.0, 1.24e9].map(format_decimal_size);
        assert_eq!(sizes, ["512 B", "1.24 kB", "1.24 GB"]);
    }

    #[test]
    fn short_durations_keep_two_units() {
        for (seconds, text) in [
            (0, "0s"),
            (60, "1m"),
            (130, "2m10s"),
            (3_599, "59m59s"),
            (7_200, "2h"),
            (8_040, "2h14m"),
        ] {
            assert_eq!(format_short_duration(Duration::from_secs(seconds)), text);
        }
    }

    #[test]
    fn durations_have_one_unit() {
        for (seconds, text) in [
            (45, "45 s"),
            (61, "1 min"),
            (1_560, "26 min"),
            (12_600, "3.5 h"),
            (526_000, "6 days"),
        ] {
            assert_eq!(format_duration(seconds * 1000), text);
        }
        for (seconds, text) in [
            (3, "10 s"),
            (38, "40 s"),
            (54, "1 min"),
            (70, "1 min"),
            (170, "3 min"),
        ] {
            assert_eq!(format_approximate_duration(seconds * 1000), text);
        }
    }
}
