//! Measurement of the share of time during which a limit has reduced the clocks.

use gpumon_probe::vendor::nvml::query::Query;

use crate::Context;

/// The policy `NVML_PERF_POLICY_POWER`. The constant below is `NVML_PERF_POLICY_THERMAL`.
const POWER_POLICY: u32 = 0;
const THERMAL_POLICY: u32 = 1;

/// The driver's counters for the power limit and the thermal limit. `None` means that the driver
/// has no such counter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Violations {
    power: Option<Counter>,
    thermal: Option<Counter>,
}

/// The elapsed time in microseconds, and the time in which a limit reduced the clocks in
/// nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Counter {
    reference_us: i128,
    violation_ns: i128,
}

impl Violations {
    pub(super) fn read(context: &Context<'_>, gpu: u32) -> Self {
        let counter = |policy| {
            let answer = context
                .run_query(gpu, Query::ViolationStatus(policy))
                .ok()?;
            Some(Counter {
                reference_us: answer.number_at(0)?,
                violation_ns: answer.number_at(1)?,
            })
        };
        Self {
            power: counter(POWER_POLICY),
            thermal: counter(THERMAL_POLICY),
        }
    }

    /// Returns the share of time since `before` in which the power limit reduced the clocks, in
    /// percent. Returns 0 if there is no earlier count.
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

    /// Returns 1 if the temperature limit reduced the clocks at any time since `before`, otherwise
    /// 0.
    pub(super) fn thermal_flag(self, before: Option<Self>) -> Option<i128> {
        let now = self.thermal?;
        let before = before.and_then(|before| before.thermal).unwrap_or(now);
        Some(i128::from(now.violation_ns > before.violation_ns))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn make_violations(reference_us: i128, violation_ns: i128) -> Violations {
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
    fn percentage_covers_time_between_counts() {
        let before = make_violations(1_000_000, 5_000_000);
        let after = make_violations(2_000_000, 255_000_000);
        assert_eq!(after.power_percent(Some(before)), Some(25));
        assert_eq!(after.thermal_flag(Some(before)), Some(1));
        assert_eq!(before.thermal_flag(Some(before)), Some(0));
    }

    #[test]
    fn first_count_does_not_report_violation() {
        assert_eq!(
            make_violations(1, 1_000_000_000).power_percent(None),
            Some(0)
        );
        assert_eq!(
            make_violations(1, 1_000_000_000).thermal_flag(None),
            Some(0)
        );
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
