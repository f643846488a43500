//! The check of gpumon's own classification: the windows of a load whose cause is known must be
//! classified correctly.

use gpumon_probe::model::{
    Absence, GpuSample, LimitClass, LimitSums, Limits, Reading, ThrottleCause,
};
use serde_json::{Map, Value};

use super::{AcceptedDeviation, Expectation, SampleWindow};
use crate::protocol::Unit;

/// The share of a load's windows that must be correct.
const MIN_CORRECT_SHARE: f64 = 0.95;
/// The share of the time that reduced clocks must cost in a window with a power cap, in percent.
const MIN_POWER_PERCENT: f64 = 5.0;
/// A power cap that leaves a larger share of the maximum clock costs too little to be checked.
const MAX_CAPPED_CLOCK: f64 = 0.94;

/// A rule for each window of a load.
#[derive(Debug, Clone, Copy)]
pub(super) enum WindowRule {
    MainCause(LimitClass),
    /// The power limit must have a share if the driver reports a power cap.
    PowerShare,
}

/// Expects that all windows of a load that can be checked follow a rule. The expected value is the
/// number of these windows, and the reported value is the number of correct ones. Windows that
/// begin before `from_ms` are ignored.
pub(super) fn expect_windows(rule: WindowRule, from_ms: u64) -> Expectation {
    let check = move |during: &SampleWindow| CheckedWindows::new(rule, during, from_ms);
    let accepted = AcceptedDeviation::Times(MIN_CORRECT_SHARE, 1.0);
    Expectation::new(rule.reading(), Unit::Windows, 0.0, accepted, String::new())
        .with_expected_value(move |during| {
            let checked = check(during);
            checked.count(checked.correct + checked.wrong.len())
        })
        .with_reported_value(move |during| {
            let checked = check(during);
            checked.count(checked.correct)
        })
        .with_explanation(move |during| check(during).explain(rule))
}

impl WindowRule {
    fn reading(self) -> &'static str {
        match self {
            Self::MainCause(_) => "limits.main",
            Self::PowerShare => "limits.power_percent",
        }
    }

    fn describe(self) -> String {
        match self {
            Self::MainCause(cause) => {
                format!("the main cause of each window must be {}", cause.name())
            }
            Self::PowerShare => {
                format!("a power cap must cost at least {MIN_POWER_PERCENT} % of each window")
            }
        }
    }

    /// Returns whether a window with these samples is correct, or the reason why it cannot be
    /// checked.
    fn check(self, limits: &Limits, samples: &[GpuSample]) -> Result<bool, &'static str> {
        match self {
            Self::MainCause(cause) => check_main_cause(limits, cause),
            Self::PowerShare => check_power_share(limits, samples),
        }
    }
}

fn check_main_cause(limits: &Limits, cause: LimitClass) -> Result<bool, &'static str> {
    use LimitClass::{Host, Idle, Latency};
    if !matches!(cause, Host | Idle) && limits.evidence.sm_percent.is_none() {
        return Err("the GPU has no counters that show this cause");
    }
    if matches!(cause, Host | Latency) && limits.evidence.cpu_percent.is_none() {
        return Err("the CPU use of the self-test is unknown, as in a container without host PIDs");
    }
    Ok(limits.main == cause)
}

fn check_power_share(limits: &Limits, samples: &[GpuSample]) -> Result<bool, &'static str> {
    let is_capped = |sample: &&GpuSample| {
        let mut reasons = sample.throttle_reasons.items().iter();
        reasons.any(|reason| reason.cause() == ThrottleCause::Power)
    };
    if samples.iter().filter(is_capped).count() * 2 < samples.len() {
        return Err("the driver did not report a power cap");
    }
    let clocks = limits.evidence.sm_mhz.zip(limits.evidence.max_sm_mhz);
    if clocks.is_none_or(|(mhz, max_mhz)| mhz > max_mhz * MAX_CAPPED_CLOCK) {
        return Err("the power cap hardly reduced the clock");
    }
    let percent = limits.power_percent.value();
    Ok(percent.is_some_and(|percent| *percent >= MIN_POWER_PERCENT))
}

#[derive(Default)]
struct CheckedWindows {
    correct: usize,
    /// The shares and the evidence of each wrong window.
    wrong: Vec<String>,
    /// The reason why the latest of the other windows cannot be checked.
    unchecked: Option<&'static str>,
}

impl CheckedWindows {
    fn new(rule: WindowRule, during: &SampleWindow, from_ms: u64) -> Self {
        let mut checked = Self::default();
        for (limits, samples) in during.limit_windows(from_ms) {
            match rule.check(limits, samples) {
                Ok(true) => checked.correct += 1,
                Ok(false) => checked.wrong.push(describe_evidence(limits)),
                Err(reason) => checked.unchecked = Some(reason),
            }
        }
        checked
    }

    /// Returns a number of windows as a reading, which is absent if no window can be checked.
    fn count(&self, windows: usize) -> Reading<f64> {
        if self.correct == 0 && self.wrong.is_empty() {
            return Reading::Absent(Absence::Unknown);
        }
        Reading::Now(windows as f64)
    }

    fn explain(&self, rule: WindowRule) -> String {
        if self.correct == 0 && self.wrong.is_empty() {
            let reason = self.unchecked.unwrap_or("no window ended during the load");
            return format!("not checkable: {reason}");
        }
        let wrong = self.wrong.iter().map(|window| format!("; {window}"));
        rule.describe() + &wrong.collect::<String>()
    }
}

/// Returns the shares of a window's causes, and the numbers that decided.
fn describe_evidence(limits: &Limits) -> String {
    let mut sums = LimitSums::default();
    sums.add(limits, limits.window_ms as f64);
    let shares = sums.summary().map(|summary| summary.shares_text());
    let numbers = match serde_json::to_value(&limits.evidence) {
        Ok(Value::Object(numbers)) => numbers,
        _ => Map::new(),
    };
    let numbers = numbers
        .iter()
        .map(|(name, number)| format!("{name} {number}"))
        .collect::<Vec<_>>()
        .join(", ");
    let seconds = limits.window_ms as f64 / 1e3;
    format!("{seconds:.1} s: {} ({numbers})", shares.unwrap_or_default())
}

impl SampleWindow {
    /// Returns the windows that began at `from_ms` or later and ended in this time range, with
    /// their samples.
    fn limit_windows(&self, from_ms: u64) -> impl Iterator<Item = (&Limits, &[GpuSample])> {
        let samples = self.samples.iter().enumerate();
        samples.filter_map(move |(last, sample)| {
            let Reading::Now(limits) = &sample.limits else {
                return None;
            };
            let begin_ms = sample.at_ms.saturating_sub(limits.window_ms);
            let is_before = |sample: &GpuSample| sample.at_ms <= begin_ms;
            let first = self.samples.partition_point(is_before);
            (begin_ms >= from_ms).then(|| (limits, &self.samples[first..=last]))
        })
    }
}

#[cfg(test)]
mod tests {
    use gpumon_probe::model::{Confidence, Health, LimitEvidence, ThrottleReason};

    use super::*;
    use crate::{
        protocol::{ReadingCheck, Verdict},
        selftest::check_expectation,
    };

    const START_MS: u64 = 10_000;

    fn make_limits(main: LimitClass, evidence: LimitEvidence) -> Limits {
        let share = |class| f64::from(u8::from(class == main)) * 100.0;
        let shares = LimitClass::ALL.map(|class| Reading::Now(share(class)));
        Limits::new(1000, shares, main, Confidence::High, evidence)
    }

    /// Returns samples of a load that takes five and a half seconds. A window of one second ends
    /// with every second sample; the first window begins half a second before the load. `limits`
    /// returns the limits of the window with this number.
    fn make_window(limits: impl Fn(usize) -> Limits, reasons: &[ThrottleReason]) -> SampleWindow {
        let sample = |number: usize| {
            let at_ms = START_MS + 500 * number as u64;
            let absence = Absence::NotSupported;
            let mut sample = GpuSample::new_absent(0, None, at_ms, Health::Ok, &absence);
            sample.throttle_reasons = Reading::Now(reasons.to_vec());
            let limits = limits(number / 2);
            sample.limits = if number % 2 == 1 {
                Reading::Now(limits)
            } else {
                Reading::Earlier {
                    value: limits,
                    at_ms: at_ms - 500,
                }
            };
            sample
        };
        let samples: Vec<_> = (0..=11).map(sample).collect();
        SampleWindow::new(&samples, &[], START_MS, START_MS + 5500)
    }

    fn check(rule: WindowRule, during: &SampleWindow) -> ReadingCheck {
        let expectation = expect_windows(rule, START_MS);
        check_expectation(("load", "it runs"), 0, &expectation, during, during)
    }

    fn with_cpu_and_counters() -> LimitEvidence {
        LimitEvidence {
            cpu_percent: Some(100.0),
            sm_percent: Some(25.0),
            ..LimitEvidence::default()
        }
    }

    #[test]
    fn first_window_of_load_is_ignored() {
        let cause = |number: usize| [LimitClass::Idle, LimitClass::Host][number.min(1)];
        let during = make_window(
            |number| make_limits(cause(number), with_cpu_and_counters()),
            &[],
        );
        let found = check(WindowRule::MainCause(LimitClass::Host), &during);
        assert_eq!(found.verdict, Verdict::Verified, "{found:?}");
        assert_eq!(
            (found.expected, found.reported),
            (Reading::Now(5.0), Reading::Now(5.0))
        );
    }

    #[test]
    fn wrong_window_is_reported_with_evidence() {
        let cause =
            |number: usize| [LimitClass::Host, LimitClass::Latency][usize::from(number == 3)];
        let during = make_window(
            |number| make_limits(cause(number), with_cpu_and_counters()),
            &[],
        );
        let found = check(WindowRule::MainCause(LimitClass::Host), &during);
        assert_eq!(
            (found.verdict, found.reported),
            (Verdict::Mismatch, Reading::Now(4.0))
        );
        assert_eq!(
            found.how,
            "the main cause of each window must be host; 1.0 s: latency-bound 100 % \
             (cpu_percent 100.0, sm_percent 25.0)"
        );
    }

    #[test]
    fn cause_without_needed_readings_is_not_checkable() {
        let during = make_window(
            |_| make_limits(LimitClass::Idle, LimitEvidence::default()),
            &[],
        );
        for (cause, reason) in [
            (LimitClass::Host, "the CPU use of the self-test is unknown"),
            (LimitClass::Tensor, "the GPU has no counters"),
        ] {
            let found = check(WindowRule::MainCause(cause), &during);
            assert_eq!(found.verdict, Verdict::NotReported);
            assert!(found.how.contains(reason), "{}", found.how);
        }
        let idle = check(WindowRule::MainCause(LimitClass::Idle), &during);
        assert_eq!(idle.verdict, Verdict::Verified);
    }

    #[test]
    fn power_share_is_checked_only_under_power_cap() {
        let during = |mhz, main, reasons: &[ThrottleReason]| {
            let evidence = LimitEvidence {
                sm_mhz: Some(mhz),
                max_sm_mhz: Some(1980.0),
                ..LimitEvidence::default()
            };
            make_window(move |_| make_limits(main, evidence.clone()), reasons)
        };
        let cap = &[ThrottleReason::SwPowerCap][..];
        for (mhz, main, reasons, verdict) in [
            (1500.0, LimitClass::Power, cap, Verdict::Verified),
            (1500.0, LimitClass::Tensor, cap, Verdict::Mismatch),
            (1950.0, LimitClass::Tensor, cap, Verdict::NotReported),
            (1500.0, LimitClass::Tensor, &[], Verdict::NotReported),
        ] {
            let found = check(WindowRule::PowerShare, &during(mhz, main, reasons));
            assert_eq!(found.verdict, verdict, "{found:?}");
        }
    }

    #[test]
    fn load_without_window_is_not_checkable() {
        let during = SampleWindow::new(&[], &[], 0, 1);
        let found = check(WindowRule::PowerShare, &during);
        assert_eq!(
            (found.verdict, &*found.how),
            (
                Verdict::NotReported,
                "not checkable: no window ended during the load"
            )
        );
    }
}
