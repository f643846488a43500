//! A threshold, as a number in the unit of its field, or with a unit: `85`, `"85 C"`, `"20 GiB"`, `"90 %"`.

use std::fmt;

use gpumon_probe::model::fields::Unit;
use serde::{Deserialize, Deserializer, de};

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Amount {
    number: f64,
    /// As it was typed; empty where it was not.
    unit: String,
}

/// What a threshold is compared with.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Scale {
    /// The value, in its field's unit.
    Value(f64),
    /// Its percentage of the field's limit.
    Share(f64),
}

/// The units in which thresholds of such a field can be written, with what each is in the field's own, which is the first.
pub fn units(unit: Unit) -> &'static [(&'static str, f64)] {
    const KIB: f64 = 1024.0;
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
        Unit::Seconds => &[("s", 1.0), ("min", 60.0), ("h", 3600.0)],
        Unit::Count => &[],
    }
}

impl Amount {
    fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        let at = text
            .find(|c: char| !c.is_ascii_digit() && !"+-.".contains(c))
            .unwrap_or(text.len());
        let number: f64 = text[..at].parse().ok()?;
        number.is_finite().then(|| Self {
            number,
            unit: text[at..].trim().to_owned(),
        })
    }

    /// What it means for a field of this unit, which is out of something or not.
    ///
    /// # Errors
    /// Where a field has no such unit: what can be written instead.
    pub(super) fn of(&self, unit: Unit, has_limit: bool) -> Result<Scale, String> {
        if self.unit.is_empty() {
            return Ok(Scale::Value(self.number));
        }
        if let Some((_, factor)) = units(unit)
            .iter()
            .find(|(known, _)| known.eq_ignore_ascii_case(&self.unit))
        {
            return Ok(Scale::Value(self.number * factor));
        }
        if self.unit == "%" && has_limit {
            return Ok(Scale::Share(self.number));
        }
        let known: Vec<&str> = units(unit)
            .iter()
            .map(|(known, _)| *known)
            .chain(has_limit.then_some("%"))
            .collect();
        Err(match known.as_slice() {
            [] => format!(
                "this field has no unit `{}`; write a number alone",
                self.unit
            ),
            known => format!(
                "this field is not in `{}`; use one of {}",
                self.unit,
                known.join(", ")
            ),
        })
    }
}

impl<'de> Deserialize<'de> for Amount {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Number;
        impl de::Visitor<'_> for Number {
            type Value = Amount;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(
                    "a number, as 85, or one with its unit, as \"85 C\", \"20 GiB\" or \"90 %\"",
                )
            }

            fn visit_i64<E: de::Error>(self, number: i64) -> Result<Amount, E> {
                self.visit_f64(number as f64)
            }

            fn visit_f64<E: de::Error>(self, number: f64) -> Result<Amount, E> {
                if number.is_finite() {
                    Ok(Amount {
                        number,
                        unit: String::new(),
                    })
                } else {
                    Err(E::invalid_value(de::Unexpected::Float(number), &self))
                }
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Amount, E> {
                Amount::parse(text)
                    .ok_or_else(|| E::invalid_value(de::Unexpected::Str(text), &self))
            }
        }
        deserializer.deserialize_any(Number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_amount_is_in_the_unit_of_its_field_or_a_share_of_its_limit() {
        let of = |text: &str, unit, has_limit| Amount::parse(text).unwrap().of(unit, has_limit);
        assert_eq!(of("85 C", Unit::Celsius, false), Ok(Scale::Value(85.0)));
        assert_eq!(of("85", Unit::Celsius, false), Ok(Scale::Value(85.0)));
        assert_eq!(
            of("20GiB", Unit::Bytes, true),
            Ok(Scale::Value(20.0 * 1024.0 * 1024.0 * 1024.0))
        );
        assert_eq!(of("90 %", Unit::Bytes, true), Ok(Scale::Share(90.0)));
        assert_eq!(of("90 %", Unit::Percent, true), Ok(Scale::Value(90.0)));
        assert_eq!(
            of("1.41 ghz", Unit::Megahertz, false),
            Ok(Scale::Value(1410.0))
        );
        assert!(of("90 %", Unit::Bytes, false).unwrap_err().contains("GiB"));
        assert!(
            of("90 F", Unit::Celsius, false)
                .unwrap_err()
                .contains("C, °C")
        );
        assert!(
            of("3 lanes", Unit::Count, false)
                .unwrap_err()
                .contains("a number alone")
        );
        for text in ["", "C", "1.2.3 C", "--1", "inf"] {
            assert_eq!(Amount::parse(text), None, "{text}");
        }
    }
}
