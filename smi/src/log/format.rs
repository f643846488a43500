//! Formats of values in the output of `-q`.

use gpumon_probe::vendor::nvml::query::Code;

use super::cursor::Cursor;
use crate::return_code;

/// The text for an absent value.
pub(super) const ABSENT: &str = "N/A";

pub(super) fn word(code: Code) -> String {
    return_code::plain(code).to_owned()
}

/// Returns the formatted value, or the reason for its absence.
pub(super) fn format_or_reason<T>(
    value: Result<T, String>,
    format: impl FnOnce(T) -> String,
) -> String {
    value.map_or_else(|word| word, format)
}

/// Returns `N/A` for a value that NVML's public interface does not provide.
pub(super) fn not_in_nvml(_: &Cursor<'_>) -> String {
    ABSENT.to_owned()
}

pub(super) fn count(number: i128) -> String {
    number.to_string()
}

/// Formats a number; `N/A` if it is negative or has all 32 bits set.
pub(super) fn known(number: i128) -> String {
    if number < 0 || number == i128::from(u32::MAX) {
        ABSENT.to_owned()
    } else {
        number.to_string()
    }
}

pub(super) fn percent(number: i128) -> String {
    format!("{number} %")
}

pub(super) fn celsius(number: i128) -> String {
    format!("{number} C")
}

/// Formats a clock in MHz.
pub(super) fn mhz(number: i128) -> String {
    format!("{number} MHz")
}

pub(super) fn microseconds(number: i128) -> String {
    format!("{number} us")
}

/// Formats nanoseconds as microseconds.
pub(super) fn nanoseconds(number: i128) -> String {
    microseconds(number / 1_000)
}

pub(super) fn milliseconds(number: i128) -> String {
    format!("{number} ms")
}

/// Formats a rate in KB/s.
pub(super) fn kilobytes_a_second(number: i128) -> String {
    format!("{number} KB/s")
}

/// Formats milliwatts as watts.
pub(super) fn watts(number: i128) -> String {
    format!("{:.2} W", number as f64 / 1_000.0)
}

/// Formats bytes as MiB, rounded up; `N/A` for the unknown value -1.
pub(super) fn mib(bytes: i128) -> String {
    if bytes < 0 {
        ABSENT.to_owned()
    } else {
        format!("{} MiB", (bytes + 0xF_FFFF) >> 20)
    }
}

/// Formats bytes as MiB, rounded down, as for the used part of BAR1.
pub(super) fn full_mib(bytes: i128) -> String {
    format!("{} MiB", bytes >> 20)
}

/// Formats a flag as `Enabled` or `Disabled`.
pub(super) fn enabled(number: i128) -> String {
    if number == 0 { "Disabled" } else { "Enabled" }.to_owned()
}

/// Formats a flag as `Yes` or `No`.
pub(super) fn yes_no(number: i128) -> String {
    if number == 0 { "No" } else { "Yes" }.to_owned()
}

/// Formats a flag as `On` or `Off`.
pub(super) fn on_off(number: i128) -> String {
    if number == 0 { "Off" } else { "On" }.to_owned()
}

/// Formats a flag as `Supported` or `Not Supported`.
pub(super) fn supported(number: i128) -> String {
    if number == 0 {
        "Not Supported"
    } else {
        "Supported"
    }
    .to_owned()
}

pub(super) fn named(number: i128, names: &[&str]) -> String {
    usize::try_from(number)
        .ok()
        .and_then(|at| names.get(at))
        .copied()
        .unwrap_or("Unknown")
        .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_rounded_up_and_the_used_bar1_down() {
        assert_eq!(mib(0), "0 MiB");
        assert_eq!(mib(1), "1 MiB");
        assert_eq!(mib(-1), "N/A");
        assert_eq!(mib(1 << 20), "1 MiB");
        assert_eq!(mib(0x22_f33f_0000), "143156 MiB");
        assert_eq!(full_mib(0x1a_0000), "1 MiB");
    }

    #[test]
    fn power_has_two_decimals() {
        assert_eq!(watts(75_170), "75.17 W");
        assert_eq!(watts(700_000), "700.00 W");
    }

    #[test]
    fn an_enumerator_that_is_not_known_is_unknown() {
        assert_eq!(named(1, &["None", "Reset"]), "Reset");
        assert_eq!(named(2, &["None", "Reset"]), "Unknown");
        assert_eq!(named(-1, &["None", "Reset"]), "Unknown");
    }
}
