//! Durations with a unit, such as `90s`, `2m` or `4h`.

use std::time::Duration;

use gpumon_probe::units::Accepted;
use serde::{Deserialize, Deserializer};

/// The accepted durations: a longer one must be a mistake.
const TIME: Accepted<Duration> = Accepted::accept_durations(
    Duration::ZERO,
    Duration::from_hours(30 * 24),
    "a time up to 30 days with its unit, as \"30s\", \"2m\" or \"4h\"",
);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Time(pub(super) Duration);

impl Time {
    pub(super) fn ms(self) -> u64 {
        self.0.as_millis() as u64
    }
}

impl<'de> Deserialize<'de> for Time {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        TIME.deserialize(deserializer).map(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_has_unit_and_bound() {
        for (text, seconds) in [("0s", 0), ("90s", 90), ("1h30m", 5400), ("30d", 2_592_000)] {
            assert_eq!(TIME.parse(text), Ok(Duration::from_secs(seconds)), "{text}");
        }
        for text in ["", "2", "2 min 3", "-1m", "31d", "m"] {
            assert!(TIME.parse(text).is_err(), "{text}");
        }
    }
}
