//! Numbers in readable form: three significant digits, and one unit for each quantity.

pub(crate) use gpumon_probe::units::three_digits;
use gpumon_probe::{
    local_time::time_zone,
    model::Reading,
    units::{duration, format_scaled},
};
use jiff::tz::TimeZone;

use super::price::with_cost;
use crate::moment::zoned;

const GIB: f64 = (1u64 << 30) as f64;
const WH_JOULES: f64 = 3_600.0;

/// The replacement for an absent reading.
pub(crate) const ABSENT: &str = "-";

/// Returns a number with a noun, such as `1 key` or `2 keys`.
pub(crate) fn format_count(number: impl Into<u64>, noun: &str) -> String {
    let number = number.into();
    format!("{number} {noun}{}", if number == 1 { "" } else { "s" })
}

/// Formats bytes in GiB without the unit, such as `0.8`, `78.2`, or `128.0`, for a column with
/// aligned decimal points.
pub(crate) fn gib_in_column(bytes: u64) -> String {
    match bytes as f64 / GIB {
        gib if bytes > 0 && gib < 0.05 => "<0.1".to_owned(),
        gib => format!("{gib:.1}"),
    }
}

/// Formats a reading as a whole number with its unit, or returns a dash.
pub(crate) fn whole(reading: &Reading<f64>, unit: &str) -> String {
    reading
        .value()
        .map_or_else(|| ABSENT.to_owned(), |value| format!("{value:.0} {unit}"))
}

/// Formats energy, such as `850 Wh`, `12.3 kWh`, or `49.8 MWh`.
pub(crate) fn energy(joules: f64) -> String {
    format_scaled(joules / WH_JOULES, &["Wh", "kWh", "MWh"])
}

/// Formats the energy of one command, such as `340 J`, `6.12 kJ`, or `1.20 MJ`. It is too small for
/// watt-hours.
pub(crate) fn joules(joules: f64) -> String {
    format_scaled(joules, &["J", "kJ", "MJ"])
}

/// Formats energy with its cost, if the price is known.
pub(crate) fn priced_energy(joules: f64) -> String {
    with_cost(energy(joules), joules)
}

/// Formats the energy of one command with its cost, if the price is known.
pub(crate) fn priced_joules(amount: f64) -> String {
    with_cost(joules(amount), amount)
}

/// Formats the time that an operation took, such as `8.53 ms`, `12.4 s`, or `26 min`.
pub(crate) fn elapsed(seconds: f64) -> String {
    match seconds {
        none if none <= 0.0 => "0 s".to_owned(),
        few if few < 0.9995 => format!("{} ms", three_digits(few * 1e3)),
        few if few < 119.5 => format!("{} s", three_digits(few)),
        many => duration((many * 1e3) as u64),
    }
}

/// Formats the age of a state, such as `45s`, `12m`, `2h14`, or `6d02`.
pub(crate) fn compact_duration(ms: u64) -> String {
    let seconds = ms / 1000;
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3_600 => format!("{}m", seconds / 60),
        3_600..86_400 => format!("{}h{:02}", seconds / 3_600, seconds / 60 % 60),
        _ => format!("{}d{:02}", seconds / 86_400, seconds / 3_600 % 24),
    }
}

/// Formats a local time, such as `10:42:07` for today or `Nov 20 10:42` for another day.
pub(crate) fn clock(at_ms: u64, now_ms: u64) -> String {
    // Snapshots of tests must be the same in every time zone.
    let zone = if cfg!(test) {
        TimeZone::UTC
    } else {
        time_zone()
    };
    let [at, now] = [at_ms, now_ms].map(|ms| zoned(ms, &zone).unwrap_or_default());
    at.strftime(if at.date() == now.date() {
        "%H:%M:%S"
    } else {
        "%b %d %H:%M"
    })
    .to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_keeps_its_points_aligned_and_something_is_never_nothing() {
        for (mib, text) in [(0, "0.0"), (20, "<0.1"), (860, "0.8"), (131_072, "128.0")] {
            assert_eq!(gib_in_column(mib << 20), text);
        }
    }

    #[test]
    fn a_moment_of_another_day_has_its_date() {
        let day_ms = 86_400_000;
        let now_ms = 1_763_630_000_000;
        assert_eq!(clock(now_ms - 1, now_ms).len(), "10:42:07".len());
        assert_eq!(
            clock(now_ms - 3 * day_ms, now_ms).len(),
            "Nov 20 10:42".len()
        );
    }

    #[test]
    fn durations_keep_two_units() {
        for (seconds, text) in [
            (0, "0s"),
            (59, "59s"),
            (60, "1m"),
            (3_599, "59m"),
            (8_040, "2h14"),
            (526_000, "6d02"),
        ] {
            assert_eq!(compact_duration(seconds * 1000), text);
        }
    }
}
