//! Durations with a unit, such as `90s`, `2m` or `4h`.

use std::time::Duration;

use gpumon_probe::units::AcceptedAmounts;
use serde::{Deserialize, Deserializer};

/// The accepted durations of a rule. A duration over 30 days must be a mistake.
const ACCEPTED_DURATIONS: AcceptedAmounts<Duration> = AcceptedAmounts::accept_durations(
    Duration::ZERO,
    Duration::from_hours(30 * 24),
    "a duration of up to 30 days with a unit, such as \"30s\", \"2m\" or \"4h\"",
);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RuleDuration(pub(super) Duration);

impl RuleDuration {
    pub(super) fn ms(self) -> u64 {
        self.0.as_millis() as u64
    }
}

impl<'de> Deserialize<'de> for RuleDuration {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        ACCEPTED_DURATIONS.deserialize(deserializer).map(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn duration_needs_unit_and_is_limited() {
        for (text, seconds) in [("0s", 0), ("90s", 90), ("1h30m", 5400), ("30d", 2_592_000)] {
            assert_eq!(
                ACCEPTED_DURATIONS.parse(text),
                Ok(Duration::from_secs(seconds)),
                "{text}"
            );
        }
        for text in ["", "2", "2 min 3", "-1m", "31d", "m"] {
            assert!(ACCEPTED_DURATIONS.parse(text).is_err(), "{text}");
        }
    }
}
