//! Memory and times as they are typed and shown.

use std::{fmt, time::Duration};

use crate::options::{bytes_in, parse_duration, parse_time};

const KIB: f64 = 1024.0;
const GIB: f64 = KIB * KIB * KIB;

/// The longest that a GPU can be reserved by a waiter that has ended.
pub(super) const LONGEST_HOLD: Duration = Duration::from_hours(1);

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Amount {
    /// So many bytes.
    Bytes(u64),
    /// So many percent of what programs can get of it.
    Percent(f64),
}

impl Amount {
    /// In bytes, of a GPU that has so many for programs.
    pub(super) fn of(self, capacity_bytes: u64) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes,
            Self::Percent(percent) => (capacity_bytes as f64 * percent / 100.0).ceil() as u64,
        }
    }
}

impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bytes(bytes) => f.write_str(&gib(*bytes)),
            Self::Percent(percent) => write!(f, "{percent} %"),
        }
    }
}

/// `12.3 GiB`; what is smaller than a tenth of one in MiB.
pub(super) fn gib(bytes: u64) -> String {
    match bytes as f64 / GIB {
        gib if gib < 0.1 => format!("{:.0} MiB", gib * KIB),
        gib => format!("{gib:.1} GiB"),
    }
}

/// `45s`, `12m10s`, `2h14m`: a time that passes.
pub(super) fn time(passed: Duration) -> String {
    let seconds = passed.as_secs();
    match (seconds / 3600, seconds / 60 % 60, seconds % 60) {
        (0, 0, seconds) => format!("{seconds}s"),
        (0, minutes, 0) => format!("{minutes}m"),
        (0, minutes, seconds) => format!("{minutes}m{seconds:02}s"),
        (hours, 0, _) => format!("{hours}h"),
        (hours, minutes, _) => format!("{hours}h{minutes:02}m"),
    }
}

pub(crate) fn parse_amount(text: &str) -> Result<Amount, String> {
    let unit_at = text
        .find(|letter: char| !letter.is_ascii_digit() && letter != '.')
        .unwrap_or(text.len());
    let (number, unit) = (&text[..unit_at], text[unit_at..].trim());
    let number: f64 = number
        .parse()
        .map_err(|_| "not an amount of memory: give one as 20GiB, 8000MB or 50%".to_owned())?;
    if number == 0.0 && unit != "%" {
        return Err("no memory at all is always free: give more than 0".to_owned());
    }
    if unit == "%" {
        let is_share = (1.0..=99.0).contains(&number);
        return is_share.then_some(Amount::Percent(number)).ok_or_else(|| {
            "not a share of the memory: give 1% to 99%; a GPU that nobody uses is what --empty waits for".to_owned()
        });
    }
    let Some(bytes) = bytes_in(unit) else {
        let unit = unit.to_ascii_lowercase();
        return Err(match unit.as_str() {
            "" => format!("no unit: did you mean {number}GiB or {number}MiB?"),
            // It means one thing here and another there.
            "k" | "m" | "g" | "t" => {
                let unit = unit.to_ascii_uppercase();
                format!(
                    "{unit} can mean two things: give {number}{unit}iB (of 1024) or {number}{unit}B (of 1000)"
                )
            }
            _ => format!("unknown unit '{unit}': give GiB, MiB, GB, MB, B or %"),
        });
    };
    match (number * bytes).ceil() {
        bytes if bytes < u64::MAX as f64 => Ok(Amount::Bytes(bytes as u64)),
        _ => Err("more memory than there can be: give it as 20GiB, 8000MB or 50%".to_owned()),
    }
}

pub(crate) fn parse_interval(text: &str) -> Result<Duration, String> {
    parse_duration(text, &(Duration::from_millis(100)..=Duration::from_mins(1)))
        .ok_or_else(|| "not an interval: give 100ms to 1m, as 500ms, 2s or 1m".to_owned())
}

pub(crate) fn parse_hold(text: &str) -> Result<Duration, String> {
    let hold = parse_time(text)?;
    if hold <= LONGEST_HOLD {
        Ok(hold)
    } else {
        Err("too long a hold: give 1s to 1h".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_has_a_unit_that_means_one_thing() {
        for (text, bytes) in [
            ("20GiB", 20 << 30),
            ("20 gib", 20 << 30),
            ("1.5GiB", 3 << 29),
            ("512MiB", 512 << 20),
            ("8000MB", 8_000_000_000),
            ("24GB", 24_000_000_000),
            ("1TiB", 1 << 40),
            ("1B", 1),
        ] {
            assert_eq!(parse_amount(text), Ok(Amount::Bytes(bytes)), "{text}");
        }
        for (text, said) in [
            ("", "20GiB"),
            ("all", "20GiB"),
            ("-1GiB", "20GiB"),
            ("1.2.3GiB", "20GiB"),
            ("20", "20GiB or 20MiB"),
            ("20G", "20GiB"),
            ("20m", "20MB"),
            ("20GiBs", "'gibs'"),
            ("0GiB", "more than 0"),
            ("99999999999TiB", "more memory than"),
            ("0%", "1% to 99%"),
            ("100%", "--empty"),
        ] {
            let error = parse_amount(text).unwrap_err();
            assert!(error.contains(said), "{text}: {error}");
        }
    }

    #[test]
    fn a_share_is_of_what_the_gpu_has_for_programs() {
        assert_eq!(parse_amount("50%"), Ok(Amount::Percent(50.0)));
        assert_eq!(Amount::Percent(50.0).of(81), 41);
        assert_eq!(Amount::Bytes(7).of(81), 7);
        assert_eq!(
            (
                Amount::Percent(50.0).to_string(),
                Amount::Bytes(20 << 30).to_string()
            ),
            ("50 %".into(), "20.0 GiB".into())
        );
        assert_eq!(
            (gib(4 << 20), gib(150_754_820_096)),
            ("4 MiB".to_owned(), "140.4 GiB".to_owned())
        );
    }

    #[test]
    fn intervals_and_holds_are_bounded() {
        assert_eq!(parse_interval("100ms"), Ok(Duration::from_millis(100)));
        assert_eq!(parse_interval("1m"), Ok(Duration::from_mins(1)));
        for text in ["", "99ms", "61s", "5", "ms", "-1s"] {
            assert!(
                parse_interval(text).unwrap_err().contains("500ms"),
                "{text}"
            );
        }
        assert_eq!(parse_hold("1h"), Ok(LONGEST_HOLD));
        assert!(parse_hold("2h").unwrap_err().contains("1h"));
    }

    #[test]
    fn times_keep_two_units() {
        for (seconds, text) in [
            (0, "0s"),
            (60, "1m"),
            (130, "2m10s"),
            (3_599, "59m59s"),
            (7_200, "2h"),
            (8_040, "2h14m"),
        ] {
            assert_eq!(time(Duration::from_secs(seconds)), text);
        }
    }
}
