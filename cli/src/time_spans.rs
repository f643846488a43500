//! Parsers for times and time spans typed by users, such as `2026-11-23T20:00`, `yesterday 20:00`,
//! `-2h`, or `20:00..22:00`.

use std::{ops::Range, str::FromStr, time::Duration};

use gpumon_probe::{local_time::time_zone, units::parse_duration};
use jiff::{
    Timestamp, ToSpan as _, Zoned,
    civil::{Date, DateTime, Time},
    tz::TimeZone,
};

/// The accepted formats, as listed in error messages.
pub(crate) const ACCEPTED_FORMS: &str = "give a date, a time of day or both, such as \
                                         2026-11-23T20:00, 20:00 or 'yesterday 20:00', or a time \
                                         relative to now, such as -2h";

/// The maximum offset of a relative time, about ten years.
const MAX_OFFSET: Duration = Duration::from_hours(24 * 366 * 10);

/// A time typed by a user. The time may be relative to now, or to the start or end of the data.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum TypedTime {
    Now,
    /// A date and time in local time.
    Local(DateTime),
    At(Timestamp),
    TimeOfDay(Time),
    /// A number of days before today, with a time of day.
    DaysAgo(i32, Time),
    /// A time before now, or before the end of the recording.
    Before(Duration),
    /// A time after the start of the recording or span.
    After(Duration),
}

/// A span between two typed times. If either is missing, the span extends to the start or end of
/// the available data.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct TypedTimeSpan {
    from: Option<TypedTime>,
    to: Option<TypedTime>,
}

/// The times to which relative times refer, and the time zone.
#[derive(Debug, Clone)]
pub(crate) struct TimeReference {
    /// The start of the data in milliseconds since 1970, if it is known. A time of day then means
    /// the first occurrence of that time after the start.
    pub(crate) begin_ms: Option<u64>,
    /// The end of the data in milliseconds since 1970: the last sample of a recording, or now.
    pub(crate) end_ms: u64,
    pub(crate) zone: TimeZone,
}

impl TimeReference {
    /// Returns the reference for history, which ends now.
    pub(crate) fn from_now(now_ms: u64) -> Self {
        Self {
            begin_ms: None,
            end_ms: now_ms,
            zone: time_zone(),
        }
    }

    /// Returns the reference for a recording, from its first to its last sample.
    pub(crate) fn from_recording((first_ms, last_ms): (u64, u64)) -> Self {
        Self {
            begin_ms: Some(first_ms),
            end_ms: last_ms,
            zone: time_zone(),
        }
    }
}

impl FromStr for TypedTime {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let bad = || format!("'{text}' is not a time: {ACCEPTED_FORMS}");
        if text == "now" {
            return Ok(Self::Now);
        }
        for (sign, made) in [
            ('-', Self::Before as fn(Duration) -> Self),
            ('+', Self::After),
        ] {
            if let Some(time) = text.strip_prefix(sign) {
                let time = parse_duration(time).filter(|time| *time <= MAX_OFFSET);
                return time.map(made).ok_or_else(bad);
            }
        }
        for (word, days) in [("today", 0), ("yesterday", 1)] {
            if let Some(rest) = text.strip_prefix(word) {
                let time = match rest.trim_start_matches(['T', ' ']) {
                    "" => Time::midnight(),
                    time => parse_time_of_day(time).ok_or_else(bad)?,
                };
                return Ok(Self::DaysAgo(days, time));
            }
        }
        if let Some(time) = parse_time_of_day(text) {
            return Ok(Self::TimeOfDay(time));
        }
        if let Ok(at) = text.parse() {
            return Ok(Self::At(at));
        }
        let with_date = text
            .parse::<DateTime>()
            .or_else(|_| text.parse::<Date>().map(Date::into));
        with_date.map(Self::Local).map_err(|_| bad())
    }
}

/// Parses `20:00` or `20:00:30`. Other formats that jiff accepts are rejected, because they could
/// be mistaken for something else.
fn parse_time_of_day(text: &str) -> Option<Time> {
    let is_clock = text.contains(':')
        && text
            .bytes()
            .all(|byte| byte.is_ascii_digit() || b":.".contains(&byte));
    // Users may type the hour with a single digit, which jiff does not accept.
    let pad = |part: &str| match part.len() {
        1 => format!("0{part}"),
        _ => part.to_owned(),
    };
    let parts: Vec<String> = text.split(':').map(pad).collect();
    parts.join(":").parse().ok().filter(|_| is_clock)
}

impl FromStr for TypedTimeSpan {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (from, to) = text.split_once("..").ok_or_else(|| {
            format!(
                "'{text}' is not a span of time: give FROM..TO, such as 20:00..22:00 or -2h..now"
            )
        })?;
        let moment = |text: &str| {
            if text.trim().is_empty() {
                Ok(None)
            } else {
                text.parse().map(Some)
            }
        };
        Ok(Self {
            from: moment(from)?,
            to: moment(to)?,
        })
    }
}

impl TypedTime {
    /// Returns the time in milliseconds since 1970. If this typed time is the end of a span,
    /// `from_ms` is the start of the span.
    fn find_ms(self, beside: &TimeReference, from_ms: Option<u64>) -> Option<u64> {
        let TimeReference {
            begin_ms,
            end_ms,
            zone,
        } = beside;
        let local = |at: DateTime| zone.to_zoned(at).ok().map(|at| at.timestamp());
        let day_of = |at_ms: u64| Some(to_zoned(at_ms, zone)?.date());
        let at = match self {
            Self::Now => return Some(*end_ms),
            Self::Before(time) => return end_ms.checked_sub(time.as_millis() as u64),
            Self::After(time) => return begin_ms.or(from_ms)?.checked_add(time.as_millis() as u64),
            Self::At(at) => at,
            Self::Local(at) => local(at)?,
            Self::DaysAgo(days, time) => local(
                day_of(*end_ms)?
                    .checked_sub(days.days())
                    .ok()?
                    .to_datetime(time),
            )?,
            Self::TimeOfDay(time) => {
                // A time of day means its first occurrence after the start. Without a start, it
                // means the last occurrence before now.
                let after_ms = from_ms.or(*begin_ms);
                let day = day_of(after_ms.unwrap_or(*end_ms))?;
                let on_that_day = local(day.to_datetime(time))?;
                let ms = on_that_day.as_millisecond();
                // A time of day up to one second before the start counts as the start, because the
                // start is rarely at a whole second.
                let shift = match after_ms {
                    Some(after_ms) if ms.saturating_add(1000) <= to_signed(after_ms) => 1,
                    None if ms > to_signed(*end_ms) => -1,
                    _ => 0,
                };
                if shift == 0 {
                    on_that_day
                } else {
                    local(day.checked_add(shift.days()).ok()?.to_datetime(time))?
                }
            }
        };
        u64::try_from(at.as_millisecond()).ok()
    }

    /// Returns the time in milliseconds since 1970.
    ///
    /// # Errors
    /// Returns an error if the time is before 1970, or is relative to an unknown start.
    pub(crate) fn resolve(self, beside: &TimeReference) -> Result<u64, String> {
        self.resolve_with_start(beside, None)
    }

    /// Like [`Self::resolve`]. If this typed time is the end of a span, `from_ms` is the start of
    /// the span.
    fn resolve_with_start(
        self,
        beside: &TimeReference,
        from_ms: Option<u64>,
    ) -> Result<u64, String> {
        self.find_ms(beside, from_ms).ok_or_else(|| {
            format!("the requested time does not exist or is out of range: {ACCEPTED_FORMS}")
        })
    }
}

impl TypedTimeSpan {
    pub(crate) fn new(from: Option<TypedTime>, to: Option<TypedTime>) -> Self {
        Self { from, to }
    }

    /// Returns the span in milliseconds since 1970, with an exclusive end.
    ///
    /// # Errors
    /// Returns an error if the span is empty.
    pub(crate) fn resolve(self, beside: &TimeReference) -> Result<Range<u64>, String> {
        let from_ms = match self.from {
            Some(from) => from.resolve(beside)?,
            None => beside.begin_ms.unwrap_or(0),
        };
        let to_ms = match self.to {
            // If the end is given as a time of day, it means the first occurrence of that time
            // after the span's start. This may be on the next day.
            Some(to) => to.resolve_with_start(beside, self.from.map(|_| from_ms))?,
            None => beside.end_ms.saturating_add(1),
        };
        if from_ms >= to_ms {
            let (from, to) = (
                format_time(from_ms, &beside.zone),
                format_time(to_ms, &beside.zone),
            );
            return Err(format!(
                "{from} is not before {to}: give a start before the end"
            ));
        }
        Ok(from_ms..to_ms)
    }
}

fn to_signed(ms: u64) -> i64 {
    i64::try_from(ms).unwrap_or(i64::MAX)
}

/// Converts a time to a time zone. Returns `None` if the time is outside the calendar's range.
pub(crate) fn to_zoned(at_ms: u64, zone: &TimeZone) -> Option<Zoned> {
    Some(
        Timestamp::from_millisecond(i64::try_from(at_ms).ok()?)
            .ok()?
            .to_zoned(zone.clone()),
    )
}

/// Formats a time in the time zone `zone`, such as `2026-11-23 20:00:00`.
pub(crate) fn format_time(at_ms: u64, zone: &TimeZone) -> String {
    to_zoned(at_ms, zone).map_or_else(
        || format!("{at_ms} ms"),
        |at| at.strftime("%Y-%m-%d %H:%M:%S").to_string(),
    )
}

/// Formats the date of a time in local time, such as `2026-11-23`.
pub(crate) fn format_date(at_ms: u64) -> String {
    format_time(at_ms, &time_zone())
        .chars()
        .take("2026-11-23".len())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a time reference in the time zone UTC+2. `begin` and `end` are timestamps.
    fn make_reference(begin: Option<&str>, end: &str) -> TimeReference {
        let ms = |text: &str| text.parse::<Timestamp>().unwrap().as_millisecond() as u64;
        TimeReference {
            begin_ms: begin.map(ms),
            end_ms: ms(end),
            zone: TimeZone::fixed(jiff::tz::offset(2)),
        }
    }

    fn resolve_time(text: &str, beside: &TimeReference) -> String {
        format_time(
            text.parse::<TypedTime>().unwrap().resolve(beside).unwrap(),
            &beside.zone,
        )
    }

    fn resolve_span(text: &str, beside: &TimeReference) -> Result<String, String> {
        let span = text.parse::<TypedTimeSpan>()?.resolve(beside)?;
        Ok(format!(
            "{} to {}",
            format_time(span.start, &beside.zone),
            format_time(span.end, &beside.zone)
        ))
    }

    #[test]
    fn time_without_date_resolves_to_past() {
        let now = make_reference(None, "2026-11-24T10:00:00Z");
        for (text, at) in [
            ("now", "2026-11-24 12:00:00"),
            ("-2h", "2026-11-24 10:00:00"),
            ("-1d", "2026-11-23 12:00:00"),
            ("2026-11-23", "2026-11-23 00:00:00"),
            ("2026-11-23T20:00", "2026-11-23 20:00:00"),
            ("2026-11-23 20:00:05", "2026-11-23 20:00:05"),
            ("2026-11-23T20:00Z", "2026-11-23 22:00:00"),
            ("yesterday 20:00", "2026-11-23 20:00:00"),
            ("today", "2026-11-24 00:00:00"),
            ("11:59", "2026-11-24 11:59:00"),
            ("9:30", "2026-11-24 09:30:00"),
            ("9:5:7", "2026-11-24 09:05:07"),
            ("20:00", "2026-11-23 20:00:00"),
        ] {
            assert_eq!(resolve_time(text, &now), at, "{text}");
        }
    }

    #[test]
    fn time_without_date_resolves_within_recording() {
        let recorded = make_reference(Some("2026-11-23T20:30:00.5Z"), "2026-11-24T03:00:00Z");
        for (text, at) in [
            ("+90s", "2026-11-23 22:31:30"),
            ("22:30", "2026-11-23 22:30:00"),
            ("23:00", "2026-11-23 23:00:00"),
            ("01:00", "2026-11-24 01:00:00"),
            ("-1h", "2026-11-24 04:00:00"),
        ] {
            assert_eq!(resolve_time(text, &recorded), at, "{text}");
        }
    }

    #[test]
    fn time_span_may_omit_start_or_end() {
        let now = make_reference(None, "2026-11-24T10:00:00Z");
        for (text, expected) in [
            (
                "yesterday 20:00..22:00",
                "2026-11-23 20:00:00 to 2026-11-23 22:00:00",
            ),
            (
                "2026-11-20T20:00..02:00",
                "2026-11-20 20:00:00 to 2026-11-21 02:00:00",
            ),
            ("20:00..+90m", "2026-11-23 20:00:00 to 2026-11-23 21:30:00"),
            ("-2h..-1h", "2026-11-24 10:00:00 to 2026-11-24 11:00:00"),
            ("-2h..", "2026-11-24 10:00:00 to 2026-11-24 12:00:00"),
        ] {
            assert_eq!(resolve_span(text, &now).unwrap(), expected, "{text}");
        }
        for (text, why) in [
            ("20:00", "FROM..TO"),
            (
                "-1h..-2h",
                "2026-11-24 11:00:00 is not before 2026-11-24 10:00:00: give a start before the \
                 end",
            ),
            ("noon..now", "'noon' is not a time"),
            ("25:00..", "'25:00' is not a time"),
            ("24:00..", "'24:00' is not a time"),
            ("10:60..", "'10:60' is not a time"),
            ("10:42:07:01..", "'10:42:07:01' is not a time"),
            ("a:b..", "'a:b' is not a time"),
            ("12:..", "'12:' is not a time"),
            ("-2..now", "'-2' is not a time"),
            ("2026-13-01..", "not a time"),
        ] {
            assert!(
                resolve_span(text, &now).unwrap_err().contains(why),
                "{text}: {:?}",
                resolve_span(text, &now)
            );
        }
    }
}
