//! A time with its unit, as `90s`, `2m` or `4h`.

use std::{fmt, time::Duration};

use jiff::{Span, SpanRelativeTo};
use serde::{Deserialize, Deserializer, de};

/// A longer time is a slip.
const LONGEST: Duration = Duration::from_hours(30 * 24);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Time(pub(super) Duration);

impl Time {
    pub(super) fn ms(self) -> u64 {
        self.0.as_millis() as u64
    }

    fn parse(text: &str) -> Option<Self> {
        let span: Span = text.parse().ok()?;
        let time = span.to_duration(SpanRelativeTo::days_are_24_hours()).ok()?;
        Duration::try_from(time)
            .ok()
            .filter(|time| *time <= LONGEST)
            .map(Self)
    }
}

impl<'de> Deserialize<'de> for Time {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Text;
        impl de::Visitor<'_> for Text {
            type Value = Time;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a time up to 30 days with its unit, as \"30s\", \"2m\" or \"4h\"")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Time, E> {
                Time::parse(text).ok_or_else(|| E::invalid_value(de::Unexpected::Str(text), &self))
            }
        }
        deserializer.deserialize_any(Text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_has_a_unit() {
        for (text, seconds) in [
            ("0s", 0),
            ("90s", 90),
            ("2m", 120),
            ("1h30m", 5400),
            ("30d", 2_592_000),
        ] {
            assert_eq!(
                Time::parse(text),
                Some(Time(Duration::from_secs(seconds))),
                "{text}"
            );
        }
        for text in ["", "2", "2 min 3", "-1m", "31d", "m"] {
            assert_eq!(Time::parse(text), None, "{text}");
        }
    }
}
