//! Formatting of numbers, sizes and durations for display, and parsing of amounts in user input.
//! Formatted sizes and durations can also be parsed.

use std::{fmt, time::Duration};

use jiff::{Span, SpanRelativeTo};
use serde::{
    Deserialize, Deserializer,
    de::{self, Unexpected, Visitor},
};

use crate::model::fields::Unit;

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

/// Formats a number in the first unit in which it is below 1000, such as `850 Wh` or `12.3 kWh`.
/// Each unit is a thousand times the previous one. Even larger numbers are formatted in the last
/// unit.
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

// Parsing of amounts in options, settings, rules, scenarios and filters. All errors have the same
// structure: the expected values with examples, and a suggestion.

/// A number with a unit, such as `20GiB`, `90 %`, `300 W`, `85 C` or `1h30m`.
#[derive(Debug, Clone, PartialEq)]
pub struct Amount {
    pub number: f64,
    /// The unit as it was typed; empty if there is none.
    pub unit: String,
}

/// The range of amounts that an option or a key accepts.
#[derive(Debug, Clone, Copy)]
pub struct AcceptedAmounts<T> {
    /// Parses an amount. The error contains a suggestion, which may be empty.
    read: fn(&str) -> Result<T, String>,
    least: T,
    most: T,
    /// A noun phrase that describes the accepted amounts, with bounds and examples.
    expected: &'static str,
}

/// Returns the names that are accepted for a unit, each with a factor that converts an amount to
/// the first name's unit.
pub fn unit_names(unit: Unit) -> &'static [(&'static str, f64)] {
    match unit {
        Unit::Percent => &[("%", 1.0)],
        Unit::Bytes => &[
            ("B", 1.0),
            ("KiB", KIB),
            ("MiB", KIB * KIB),
            ("GiB", KIB * KIB * KIB),
            ("TiB", KIB * KIB * KIB * KIB),
            ("kB", 1e3),
            ("MB", 1e6),
            ("GB", 1e9),
            ("TB", 1e12),
        ],
        Unit::BytesPerSecond => &[
            ("B/s", 1.0),
            ("KiB/s", KIB),
            ("MiB/s", KIB * KIB),
            ("GiB/s", KIB * KIB * KIB),
            ("kB/s", 1e3),
            ("MB/s", 1e6),
            ("GB/s", 1e9),
        ],
        Unit::Watts => &[("W", 1.0), ("kW", 1e3)],
        Unit::Joules => &[
            ("J", 1.0),
            ("kJ", 1e3),
            ("MJ", 1e6),
            ("Wh", 3.6e3),
            ("kWh", 3.6e6),
        ],
        Unit::Celsius | Unit::CelsiusDifference => &[("C", 1.0), ("°C", 1.0)],
        Unit::Megahertz => &[("MHz", 1.0), ("GHz", 1e3)],
        Unit::Seconds => &[
            ("s", 1.0),
            ("min", 60.0),
            ("m", 60.0),
            ("h", 3600.0),
            ("d", 86_400.0),
        ],
        Unit::Count => &[],
    }
}

fn find_factor(name: &str, unit: Unit) -> Option<f64> {
    let mut names = unit_names(unit).iter();
    let (_, factor) = names.find(|(known, _)| known.eq_ignore_ascii_case(name))?;
    Some(*factor)
}

impl Amount {
    /// Parses a finite number and the following unit: `85`, `-1 GiB`, `1e7`.
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        let is_unit = |(at, letter): &(usize, char)| {
            let is_exponent = || {
                letter.eq_ignore_ascii_case(&'e')
                    && text[at + 1..].starts_with(|next: char| next.is_ascii_digit() || next == '-')
            };
            !(letter.is_ascii_digit() || "+-.".contains(*letter) || is_exponent())
        };
        let at = text
            .char_indices()
            .find(is_unit)
            .map_or(text.len(), |(at, _)| at);
        let number: f64 = text[..at].parse().ok()?;
        let unit = text[at..].trim().to_owned();
        number.is_finite().then_some(Self { number, unit })
    }

    /// Converts the number to the unit that is first in [`unit_names`]. Returns `None` if the
    /// amount has the unit of another quantity.
    pub fn convert_to(&self, unit: Unit) -> Option<f64> {
        Some(self.number * find_factor(&self.unit, unit)?)
    }
}

impl<'de> Deserialize<'de> for Amount {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct NumberOrText;
        impl Visitor<'_> for NumberOrText {
            type Value = Amount;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(
                    "a number, such as 85, or a number with its unit, such as \"85 C\", \"20 \
                     GiB\" or \"90 %\"",
                )
            }

            fn visit_i64<E: de::Error>(self, number: i64) -> Result<Amount, E> {
                self.visit_f64(number as f64)
            }

            fn visit_f64<E: de::Error>(self, number: f64) -> Result<Amount, E> {
                let amount = number.is_finite().then(|| Amount {
                    number,
                    unit: String::new(),
                });
                amount.ok_or_else(|| E::invalid_value(Unexpected::Float(number), &self))
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Amount, E> {
                Amount::parse(text).ok_or_else(|| E::invalid_value(Unexpected::Str(text), &self))
            }
        }
        deserializer.deserialize_any(NumberOrText)
    }
}

impl AcceptedAmounts<u64> {
    /// Accepts sizes in bytes with an unambiguous unit: `20GiB`, but not `20G`.
    pub const fn accept_sizes(least: u64, most: u64, expected: &'static str) -> Self {
        Self {
            read: parse_size_or_suggest,
            least,
            most,
            expected,
        }
    }
}

impl AcceptedAmounts<Duration> {
    /// Accepts durations with a unit: `500ms`, `2h30m`, `1d`.
    pub const fn accept_durations(least: Duration, most: Duration, expected: &'static str) -> Self {
        Self {
            read: parse_duration_or_suggest,
            least,
            most,
            expected,
        }
    }
}

impl<T: PartialOrd> AcceptedAmounts<T> {
    /// Parses an amount.
    ///
    /// # Errors
    /// Returns a message with the expected values and a suggestion.
    pub fn parse(&self, text: &str) -> Result<T, String> {
        self.parse_or_suggest(text)
            .map_err(|hint| format!("expected {}{hint}", self.expected))
    }

    /// Parses an amount. The error contains a suggestion, which may be empty.
    fn parse_or_suggest(&self, text: &str) -> Result<T, String> {
        let amount = (self.read)(text)?;
        let is_accepted = (&self.least..=&self.most).contains(&&amount);
        is_accepted.then_some(amount).ok_or_else(String::new)
    }

    /// Deserializes an amount that is a string in a file.
    ///
    /// # Errors
    /// Returns an error with the actual and the expected values.
    pub fn deserialize<'de, D: Deserializer<'de>>(&self, deserializer: D) -> Result<T, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<T: PartialOrd> Visitor<'_> for &AcceptedAmounts<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.expected)
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<T, E> {
        self.parse_or_suggest(text).map_err(|hint| {
            let expected = self.expected;
            E::custom(format_args!(
                "invalid value: string {text:?}, expected {expected}{hint}"
            ))
        })
    }
}

/// Parses a duration of any length: `500ms`, `1.5 s`, `2h30m`.
pub fn parse_duration(text: &str) -> Option<Duration> {
    let span: Span = text.parse().ok()?;
    let time = span.to_duration(SpanRelativeTo::days_are_24_hours()).ok()?;
    time.try_into().ok()
}

fn parse_duration_or_suggest(text: &str) -> Result<Duration, String> {
    parse_duration(text).ok_or_else(|| match text.parse::<u64>() {
        Ok(number) => format!("; did you mean {number}s or {number}m?"),
        Err(_) => String::new(),
    })
}

fn parse_size_or_suggest(text: &str) -> Result<u64, String> {
    let Some(amount) = Amount::parse(text) else {
        return Err(String::new());
    };
    if let Some(bytes) = amount.convert_to(Unit::Bytes) {
        // Negative numbers are rejected here, because the cast would turn them into 0.
        return if bytes >= 0.0 {
            Ok(bytes as u64)
        } else {
            Err(String::new())
        };
    }
    let Amount { number, unit } = amount;
    Err(match unit.to_ascii_uppercase().as_str() {
        "" => format!("; did you mean {number}GiB or {number}MiB?"),
        prefix @ ("K" | "M" | "G" | "T") => {
            format!(
                "; {unit} can mean {number}{prefix}iB (powers of 1024) or {number}{prefix}B \
             (powers of 1000)"
            )
        }
        _ => format!("; unknown unit '{unit}', use GiB, MiB, GB, MB or B"),
    })
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

#[cfg(test)]
mod amount_tests {
    use super::*;

    const SIZE: AcceptedAmounts<u64> =
        AcceptedAmounts::accept_sizes(1, 1 << 50, "a size, such as 20GiB");
    const TIME: AcceptedAmounts<Duration> = AcceptedAmounts::accept_durations(
        Duration::from_micros(1),
        Duration::from_hours(24 * 7),
        "a time, such as 10m",
    );

    #[test]
    fn amount_is_number_and_unit() {
        for (text, unit, number) in [
            ("85 C", Unit::Celsius, 85.0),
            ("20GiB", Unit::Bytes, 20.0 * KIB * KIB * KIB),
            ("20 gib", Unit::Bytes, 20.0 * KIB * KIB * KIB),
            ("0.5MiB", Unit::Bytes, 512.0 * KIB),
            ("24GB", Unit::Bytes, 24e9),
            ("-1 kb", Unit::Bytes, -1e3),
            ("90 %", Unit::Percent, 90.0),
            ("1.41 ghz", Unit::Megahertz, 1410.0),
            ("1e3 W", Unit::Watts, 1e3),
            ("2h", Unit::Seconds, 7200.0),
        ] {
            let amount = Amount::parse(text).unwrap();
            assert_eq!(
                amount.convert_to(unit).map(f64::to_bits),
                Some(f64::to_bits(number)),
                "{text}"
            );
        }
        for (text, unit) in [
            ("90 F", Unit::Celsius),
            ("3 lanes", Unit::Count),
            ("1iB", Unit::Bytes),
        ] {
            assert_eq!(
                Amount::parse(text).unwrap().convert_to(unit),
                None,
                "{text}"
            );
        }
        for text in ["", "C", "1.2.3 C", "--1", "inf", "nan GiB"] {
            assert_eq!(Amount::parse(text), None, "{text}");
        }
        let alone = Amount {
            number: 1e7,
            unit: String::new(),
        };
        assert_eq!(Amount::parse("1e7"), Some(alone));
    }

    #[test]
    fn size_needs_unambiguous_unit() {
        for (text, bytes) in [
            ("20GiB", 20 << 30),
            ("20 gib", 20 << 30),
            ("1.5GiB", 3 << 29),
            ("12 GiB", 12 << 30),
            ("8000MB", 8_000_000_000),
            ("1TiB", 1 << 40),
            ("1B", 1),
        ] {
            assert_eq!(SIZE.parse(text), Ok(bytes), "{text}");
        }
        for (text, hint) in [
            ("", "20GiB"),
            ("all", "20GiB"),
            ("-1GiB", "20GiB"),
            ("1.2.3GiB", "20GiB"),
            ("GiB", "20GiB"),
            ("0GiB", "20GiB"),
            ("99999999999TiB", "20GiB"),
            ("20", "20GiB or 20MiB"),
            ("20G", "20GiB (powers of 1024)"),
            ("20m", "20MB (powers of 1000)"),
            ("20GiBs", "'GiBs'"),
        ] {
            let error = SIZE.parse(text).unwrap_err();
            assert!(
                error.starts_with("expected a size") && error.contains(hint),
                "{text}: {error}"
            );
        }
    }

    #[test]
    fn duration_needs_unit() {
        for (text, microseconds) in [
            ("20 us", 20),
            ("2.8 ms", 2_800),
            ("90s", 90_000_000),
            ("1h30m", 5_400_000_000),
            ("7d", 604_800_000_000),
        ] {
            assert_eq!(
                TIME.parse(text),
                Ok(Duration::from_micros(microseconds)),
                "{text}"
            );
        }
        for text in [
            "",
            "10",
            "m",
            "0s",
            "8d",
            "-1m",
            "2 min 3",
            "1h ago",
            "99999999999999999999h",
            "30000000000000000d",
        ] {
            let error = TIME.parse(text).unwrap_err();
            assert!(
                error.starts_with("expected a time, such as 10m"),
                "{text}: {error}"
            );
        }
        assert!(
            TIME.parse("10")
                .unwrap_err()
                .ends_with("did you mean 10s or 10m?")
        );
    }

    #[test]
    fn formatted_amounts_can_be_parsed() {
        for bytes in [1.0, 512.0, 1536.0, 3e6, 5e9, 7e13] {
            let typed = SIZE.parse(&format_byte_size(bytes)).unwrap() as f64;
            assert!((typed / bytes - 1.0).abs() < 0.01, "{bytes}: {typed}");
        }
        for seconds in [1, 45, 60, 130, 3_600, 8_040, 86_400, 604_800] {
            let time = Duration::from_secs(seconds);
            assert!(
                TIME.parse(&format_duration(seconds * 1000)).is_ok(),
                "{time:?}"
            );
            let typed = TIME.parse(&format_short_duration(time)).unwrap();
            assert!(
                time.abs_diff(typed) < Duration::from_mins(1),
                "{time:?}: {typed:?}"
            );
        }
    }
}
