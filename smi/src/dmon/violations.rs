//! Measurement of the share of time in which a limit reduced the clocks.

use gpumon_probe::vendor::nvml::query::Query;

use crate::Context;

/// The policies `NVML_PERF_POLICY_POWER` and `NVML_PERF_POLICY_THERMAL`.
const POWER: u32 = 0;
const THERMAL: u32 = 1;

/// The driver's counters of both limits; `None` if the driver does not count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Violations {
    power: Option<Counter>,
    thermal: Option<Counter>,
}

/// The elapsed time in microseconds, and the time in violation in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Counter {
    reference_us: i128,
    violation_ns: i128,
}

impl Violations {
    pub(super) fn ask(context: &Context<'_>, gpu: u32) -> Self {
        let counter = |policy| {
            let answer = context.ask(gpu, Query::ViolationStatus(policy)).ok()?;
            Some(Counter {
                reference_us: answer.at(0)?,
                violation_ns: answer.at(1)?,
            })
        };
        Self {
            power: counter(POWER),
            thermal: counter(THERMAL),
        }
    }

    /// Returns the percentage of time since an earlier count in which power was the limit; 0
    /// without an earlier count.
    pub(super) fn power_percent(self, before: Option<Self>) -> Option<i128> {
        let now = self.power?;
        let Some(before) = before.and_then(|before| before.power) else {
            return Some(0);
        };
        let passed_us = now.reference_us - before.reference_us;
        if passed_us <= 0 {
            return Some(0);
        }
        Some(((now.violation_ns - before.violation_ns) / (passed_us * 10)).clamp(0, 100))
    }

    /// Returns 1 if temperature was the limit at any time since an earlier count, else 0.
    pub(super) fn thermal(self, before: Option<Self>) -> Option<i128> {
        let now = self.thermal?;
        let before = before.and_then(|before| before.thermal).unwrap_or(now);
        Some(i128::from(now.violation_ns > before.violation_ns))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(reference_us: i128, violation_ns: i128) -> Violations {
        let counter = Some(Counter {
            reference_us,
            violation_ns,
        });
        Violations {
            power: counter,
            thermal: counter,
        }
    }

    #[test]
    fn a_share_is_of_the_time_between_two_counts() {
        let before = counted(1_000_000, 5_000_000);
        let after = counted(2_000_000, 255_000_000);
        assert_eq!(after.power_percent(Some(before)), Some(25));
        assert_eq!(after.thermal(Some(before)), Some(1));
        assert_eq!(before.thermal(Some(before)), Some(0));
    }

    #[test]
    fn the_first_count_is_no_violation_yet() {
        assert_eq!(counted(1, 1_000_000_000).power_percent(None), Some(0));
        assert_eq!(counted(1, 1_000_000_000).thermal(None), Some(0));
        assert_eq!(
            Violations {
                power: None,
                thermal: None
            }
            .power_percent(None),
            None
        );
    }
}
