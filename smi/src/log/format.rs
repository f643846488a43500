//! Formatting of values in the output of `-q`.

use gpumon_probe::vendor::nvml::query::Code;

use super::cursor::Cursor;
use crate::return_code;

/// The text that replaces an absent value.
pub(super) const ABSENT: &str = "N/A";

pub(super) fn format_code(code: Code) -> String {
    return_code::format_plain(code).to_owned()
}

/// Returns the formatted value, or the reason for its absence.
pub(super) fn format_or_reason<T>(
    value: Result<T, String>,
    format: impl FnOnce(T) -> String,
) -> String {
    value.map_or_else(|word| word, format)
}

/// Returns `N/A`, for values that NVML's public interface does not provide.
pub(super) fn format_absent(_: &Cursor<'_>) -> String {
    ABSENT.to_owned()
}

pub(super) fn format_count(number: i128) -> String {
    number.to_string()
}

/// Formats a number, or returns `N/A` if the number is negative or has all 32 bits set.
pub(super) fn format_valid_number(number: i128) -> String {
    if number < 0 || number == i128::from(u32::MAX) {
        ABSENT.to_owned()
    } else {
        number.to_string()
    }
}

pub(super) fn format_percent(number: i128) -> String {
    format!("{number} %")
}

pub(super) fn format_celsius(number: i128) -> String {
    format!("{number} C")
}

/// Formats a clock in MHz.
pub(super) fn format_mhz(number: i128) -> String {
    format!("{number} MHz")
}

pub(super) fn format_microseconds(number: i128) -> String {
    format!("{number} us")
}

/// Formats a time in nanoseconds as microseconds.
pub(super) fn format_nanoseconds(number: i128) -> String {
    format_microseconds(number / 1_000)
}

pub(super) fn format_milliseconds(number: i128) -> String {
    format!("{number} ms")
}

/// Formats a rate in KB/s.
pub(super) fn format_kilobytes_per_second(number: i128) -> String {
    format!("{number} KB/s")
}

/// Formats a power in milliwatts as watts.
pub(super) fn format_watts(number: i128) -> String {
    format!("{:.2} W", number as f64 / 1_000.0)
}

/// Formats a number of bytes as MiB, rounded up. Returns `N/A` for -1, which means unknown.
pub(super) fn format_mib(bytes: i128) -> String {
    if bytes < 0 {
        ABSENT.to_owned()
    } else {
        format!("{} MiB", (bytes + 0xF_FFFF) >> 20)
    }
}

/// Formats a number of bytes as MiB, rounded down. nvidia-smi does so for the used part of BAR1.
pub(super) fn format_mib_rounded_down(bytes: i128) -> String {
    format!("{} MiB", bytes >> 20)
}

/// Formats a flag as `Enabled` or `Disabled`.
pub(super) fn format_enabled(number: i128) -> String {
    if number == 0 { "Disabled" } else { "Enabled" }.to_owned()
}

/// Formats a flag as `Yes` or `No`.
pub(super) fn format_yes_no(number: i128) -> String {
    if number == 0 { "No" } else { "Yes" }.to_owned()
}

/// Formats a flag as `On` or `Off`.
pub(super) fn format_on_off(number: i128) -> String {
    if number == 0 { "Off" } else { "On" }.to_owned()
}

/// Formats a flag as `Supported` or `Not Supported`.
pub(super) fn format_supported(number: i128) -> String {
    if number == 0 {
        "Not Supported"
    } else {
        "Supported"
    }
    .to_owned()
}

pub(super) fn format_name(number: i128, names: &[&str]) -> String {
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
    fn used_bar1_is_rounded_down_unlike_memory() {
        assert_eq!(format_mib(0), "0 MiB");
        assert_eq!(format_mib(1), "1 MiB");
        assert_eq!(format_mib(-1), "N/A");
        assert_eq!(format_mib(1 << 20), "1 MiB");
        assert_eq!(format_mib(0x22_f33f_0000), "143156 MiB");
        assert_eq!(format_mib_rounded_down(0x1a_0000), "1 MiB");
    }

    #[test]
    fn power_has_two_decimals() {
        assert_eq!(format_watts(75_170), "75.17 W");
        assert_eq!(format_watts(700_000), "700.00 W");
    }

    #[test]
    fn unknown_enumerator_is_printed_as_unknown() {
        assert_eq!(format_name(1, &["None", "Reset"]), "Reset");
        assert_eq!(format_name(2, &["None", "Reset"]), "Unknown");
        assert_eq!(format_name(-1, &["None", "Reset"]), "Unknown");
    }
}
