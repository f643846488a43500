//! Values as fields.

use gpumon_probe::model::Reading;
use jiff::Timestamp;
use serde::Serialize;

/// A number with three digits after the point at most, and none that are 0.
pub(super) fn number(reading: &Reading<f64>) -> Option<String> {
    reading.value().map(|value| rounded(*value))
}

pub(crate) fn rounded(value: f64) -> String {
    format!("{}", (value * 1000.0).round() / 1000.0)
}

pub(super) fn plain<T: ToString>(reading: &Reading<T>) -> Option<String> {
    reading.value().map(ToString::to_string)
}

pub(super) fn word(value: &impl Serialize) -> String {
    serde_json::to_value(value)
        .ok()
        .and_then(|value| value.as_str().map(str::to_owned))
        .unwrap_or_default()
}

/// `2025-11-20T09:13:20.250Z`
pub(crate) fn time(at_ms: u64) -> String {
    let at = Timestamp::from_millisecond(i64::try_from(at_ms).unwrap_or(i64::MAX))
        .unwrap_or(Timestamp::MAX);
    format!("{at:.3}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_times_have_no_more_digits_than_they_need() {
        assert_eq!(number(&Reading::Now(64.0)).unwrap(), "64");
        assert_eq!(rounded(0.123_456), "0.123");
        assert_eq!(time(1_763_630_000_250), "2025-11-20T09:13:20.250Z");
    }
}
