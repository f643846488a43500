//! Formats numbers in a readable way: three significant digits, and one unit per quantity. Amounts
//! of energy include their cost if the price is known.

use std::sync::OnceLock;

use gpumon_probe::{
    local_time::time_zone,
    model::{EnergyPrice, Reading},
    units::{format_duration, format_scaled},
};
use jiff::tz::TimeZone;

use crate::time_spans::to_zoned;

pub(crate) use gpumon_probe::units::format_three_digits;

pub(crate) const GIB: f64 = (1u64 << 30) as f64;
const WH_JOULES: f64 = 3_600.0;

/// The text shown for an absent reading.
pub(crate) const ABSENT: &str = "-";

/// Formats a value, or returns a dash if it is absent.
pub(crate) fn format_optional<T>(value: Option<T>, format: impl FnOnce(T) -> String) -> String {
    value.map_or_else(|| ABSENT.to_owned(), format)
}

/// Formats a number with a noun, such as `1 key` or `2 keys`.
pub(crate) fn format_count(number: impl Into<u64>, noun: &str) -> String {
    let number = number.into();
    format!("{number} {noun}{}", if number == 1 { "" } else { "s" })
}

/// Formats bytes in GiB without the unit, such as `0.8`, `78.2`, or `128.0`, for a column with
/// aligned decimal points.
pub(crate) fn format_gib(bytes: u64) -> String {
    match bytes as f64 / GIB {
        gib if bytes > 0 && gib < 0.05 => "<0.1".to_owned(),
        gib => format!("{gib:.1}"),
    }
}

/// Formats a reading as a whole number with its unit, or as a dash if it is absent.
pub(crate) fn format_whole_number(reading: &Reading<f64>, unit: &str) -> String {
    format_optional(reading.value(), |value| format!("{value:.0} {unit}"))
}

/// Formats energy, such as `850 Wh`, `12.3 kWh`, or `49.8 MWh`.
pub(crate) fn format_energy(joules: f64) -> String {
    format_scaled(joules / WH_JOULES, &["Wh", "kWh", "MWh"])
}

/// Formats the energy of a single command, such as `340 J`, `6.12 kJ`, or `1.20 MJ`. Such amounts
/// are too small for watt-hours.
pub(crate) fn format_joules(joules: f64) -> String {
    format_scaled(joules, &["J", "kJ", "MJ"])
}

/// Formats energy, followed by its cost if the price is known.
pub(crate) fn format_energy_with_cost(joules: f64) -> String {
    append_cost(format_energy(joules), joules)
}

/// Formats the energy of a single command, followed by its cost if the price is known.
pub(crate) fn format_joules_with_cost(amount: f64) -> String {
    append_cost(format_joules(amount), amount)
}

/// Formats the time that an operation took, such as `8.53 ms`, `12.4 s`, or `26 min`.
pub(crate) fn format_elapsed(seconds: f64) -> String {
    match seconds {
        none if none <= 0.0 => "0 s".to_owned(),
        few if few < 0.9995 => format!("{} ms", format_three_digits(few * 1e3)),
        few if few < 119.5 => format!("{} s", format_three_digits(few)),
        many => format_duration((many * 1e3) as u64),
    }
}

/// Formats a duration, such as `45s`, `12m`, `2h14`, or `6d02`.
pub(crate) fn format_compact_duration(ms: u64) -> String {
    let seconds = ms / 1000;
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3_600 => format!("{}m", seconds / 60),
        3_600..86_400 => format!("{}h{:02}", seconds / 3_600, seconds / 60 % 60),
        _ => format!("{}d{:02}", seconds / 86_400, seconds / 3_600 % 24),
    }
}

/// Formats a local time, such as `10:42:07` for today or `Nov 20 10:42` for another day.
pub(crate) fn format_clock(at_ms: u64, now_ms: u64) -> String {
    // In tests, UTC is used, so that snapshots are the same in every time zone.
    let zone = if cfg!(test) {
        TimeZone::UTC
    } else {
        time_zone()
    };
    let [at, now] = [at_ms, now_ms].map(|ms| to_zoned(ms, &zone).unwrap_or_default());
    at.strftime(if at.date() == now.date() {
        "%H:%M:%S"
    } else {
        "%b %d %H:%M"
    })
    .to_string()
}

/// The energy price for all output of this process.
static PRICE: OnceLock<EnergyPrice> = OnceLock::new();

/// Sets the energy price, which adds costs to all amounts of energy that this process prints.
pub(crate) fn set_energy_price(price: EnergyPrice) {
    let _ = PRICE.set(price);
}

/// Returns the energy price, if known.
pub(crate) fn energy_price() -> Option<&'static EnergyPrice> {
    PRICE.get()
}

/// Formats the cost of an amount of energy. Returns `None` if the price is unknown.
pub(crate) fn format_cost(joules: f64) -> Option<String> {
    energy_price().map(|price| price.format_cost(joules))
}

/// Appends the cost to a formatted amount of energy if the price is known, as in `1.39 kWh (0.42
/// EUR)`.
fn append_cost(amount: String, joules: f64) -> String {
    match format_cost(joules) {
        Some(cost) => format!("{amount} ({cost})"),
        None => amount,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gib_text_has_one_decimal_unless_tiny() {
        for (mib, text) in [(0, "0.0"), (20, "<0.1"), (860, "0.8"), (131_072, "128.0")] {
            assert_eq!(format_gib(mib << 20), text);
        }
    }

    #[test]
    fn time_on_other_day_includes_date() {
        let day_ms = 86_400_000;
        let now_ms = 1_763_630_000_000;
        assert_eq!(format_clock(now_ms - 1, now_ms).len(), "10:42:07".len());
        assert_eq!(
            format_clock(now_ms - 3 * day_ms, now_ms).len(),
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
            assert_eq!(format_compact_duration(seconds * 1000), text);
        }
    }
}
