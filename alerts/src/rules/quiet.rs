//! Times at which nobody is notified: hours of the day such as `22:00-07:00`, or a date such as
//! `until 2026-12-24`.

use jiff::{
    Timestamp,
    civil::{DateTime, Time},
    tz::TimeZone,
};

/// A time at which nobody is notified, in the time zone of the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QuietTime {
    /// Every day from the first time until the second, which may be on the next day.
    Daily(Time, Time),
    /// All times before this moment.
    Until(DateTime),
}

/// The accepted formats of a quiet time, for error messages.
pub(super) const EXPECTED_FORMATS: &str = "hours of the day, such as \"22:00-07:00\", or a date, \
                                         such as \"until 2026-12-24\" or \"until 2026-12-24T18:00\"";

impl QuietTime {
    pub(super) fn parse(text: &str) -> Option<Self> {
        if let Some(until) = text.strip_prefix("until ") {
            return until.trim().parse().ok().map(Self::Until);
        }
        let (from, to) = text.split_once('-')?;
        let (from, to) = (from.trim().parse().ok()?, to.trim().parse().ok()?);
        (from != to).then_some(Self::Daily(from, to))
    }

    /// Returns `true` if `at_ms` is within this quiet time in the given time zone.
    pub fn contains(&self, at_ms: u64, zone: &TimeZone) -> bool {
        let Ok(at) = Timestamp::from_millisecond(at_ms.cast_signed()) else {
            return false;
        };
        let at = zone.to_datetime(at);
        match *self {
            Self::Until(end) => at < end,
            Self::Daily(from, to) if from < to => (from..to).contains(&at.time()),
            Self::Daily(from, to) => at.time() >= from || at.time() < to,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn quiet_time_contains(text: &str, at: &str) -> bool {
        let zone = TimeZone::fixed(jiff::tz::offset(2));
        let at_ms = at
            .parse::<DateTime>()
            .unwrap()
            .to_zoned(zone.clone())
            .unwrap()
            .timestamp()
            .as_millisecond();
        QuietTime::parse(text)
            .unwrap()
            .contains(at_ms as u64, &zone)
    }

    #[test]
    fn silence_hours_can_cross_midnight() {
        for (at, night, noon) in [
            ("2026-03-01T21:59:59", false, false),
            ("2026-03-01T22:00", true, false),
            ("2026-03-02T06:59:59", true, false),
            ("2026-03-02T07:00", false, false),
            ("2026-03-02T12:30", false, true),
        ] {
            assert_eq!(
                (
                    quiet_time_contains("22:00-07:00", at),
                    quiet_time_contains("12:00 - 13:00", at)
                ),
                (night, noon),
                "{at}"
            );
        }
    }

    #[test]
    fn silence_ends_on_given_date() {
        assert!(
            quiet_time_contains("until 2026-12-24", "2026-12-23T23:59:59")
                && !quiet_time_contains("until 2026-12-24", "2026-12-24T00:00")
        );
        assert!(quiet_time_contains(
            "until 2026-12-24T18:00",
            "2026-12-24T17:00"
        ));
        for text in [
            "",
            "22:00",
            "25:00-07:00",
            "07:00-07:00",
            "until tomorrow",
            "until",
        ] {
            assert_eq!(QuietTime::parse(text), None, "{text}");
        }
    }
}
