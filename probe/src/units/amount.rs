//! Parsing of amounts in user input, such as `20GiB`, `90 %`, `300 W`, `85 C`, `1h30m`.
//!
//! Options, settings, rules, scenarios and filters parse amounts with this module. All errors have
//! the same structure: the expected values with examples, and a suggestion.

use super::KIB;
use std::{fmt, time::Duration};

use jiff::{Span, SpanRelativeTo};
use serde::{
    Deserialize, Deserializer,
    de::{self, Unexpected, Visitor},
};

use crate::model::fields::Unit;

/// A number with a unit.
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

/// Returns the accepted names of a unit, each with its size relative to the first name.
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

    /// Converts the number to the first name in [`unit_names`]. Returns `None` if the amount has
    /// the unit of another quantity.
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
            read: read_size,
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
            read: read_duration,
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

fn read_duration(text: &str) -> Result<Duration, String> {
    parse_duration(text).ok_or_else(|| match text.parse::<u64>() {
        Ok(number) => format!("; did you mean {number}s or {number}m?"),
        Err(_) => String::new(),
    })
}

fn read_size(text: &str) -> Result<u64, String> {
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
            format!("; {unit} can mean {number}{prefix}iB (of 1024) or {number}{prefix}B (of 1000)")
        }
        _ => format!("; unknown unit '{unit}', use GiB, MiB, GB, MB or B"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::{format_byte_size, format_duration, format_short_duration};

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
            ("20G", "20GiB (of 1024)"),
            ("20m", "20MB (of 1000)"),
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
