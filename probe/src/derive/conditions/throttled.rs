//! The clocks are held down.

use super::{
    clock::Moment,
    hysteresis::{Hysteresis, Observation},
    rule::{Finding, Rule, View},
    text,
};
use crate::model::{Condition, ConditionKind, Severity, ThrottleReason};

pub(super) const BEGIN_AFTER_MS: u64 = 3_000;

const END_AFTER_MS: u64 = 10_000;

/// What is a concern, the worst first. Nothing to do, clocks that somebody asked for and a display's needs are none.
const CONCERNS: [ThrottleReason; 6] = [
    ThrottleReason::HwThermalSlowdown,
    ThrottleReason::HwPowerBrakeSlowdown,
    ThrottleReason::HwSlowdown,
    ThrottleReason::SwThermalSlowdown,
    ThrottleReason::SwPowerCap,
    ThrottleReason::SyncBoost,
];

/// Each reason begins and ends by itself, so that the condition neither flaps nor names one that is long over.
pub(super) struct Throttled {
    hysteresis: [Hysteresis<()>; 6],
    since: Option<Moment>,
}

impl Throttled {
    pub(super) fn new() -> Self {
        Self {
            hysteresis: CONCERNS.map(|_| Hysteresis::new(BEGIN_AFTER_MS, END_AFTER_MS)),
            since: None,
        }
    }
}

impl Rule for Throttled {
    fn evaluate(&mut self, view: &View<'_>) -> Option<Condition> {
        let given = view.fresh(&view.sample.throttle_reasons);
        let mut reasons = Vec::new();
        let mut began = Vec::new();
        for (reason, hysteresis) in CONCERNS.iter().zip(&mut self.hysteresis) {
            let observation = match given {
                None => Observation::Unknown,
                Some(given) if is_given(*reason, given) => Observation::Active(()),
                Some(_) => Observation::Inactive,
            };
            if let Some((since, ())) = hysteresis.update(observation, view.now) {
                reasons.push(*reason);
                began.push(since);
            }
        }
        let earliest = began
            .into_iter()
            .reduce(|one, other| if other.since(one) > 0 { one } else { other });
        self.since = earliest.map(|earliest| self.since.unwrap_or(earliest));
        let since = self.since?;
        Some(finding(view, reasons).since(since))
    }

    fn forget(&mut self) {
        *self = Self::new();
    }
}

/// A slowdown by the hardware is given together with its cause, where the driver knows the cause.
fn is_given(reason: ThrottleReason, given: &[ThrottleReason]) -> bool {
    let says_more = [
        ThrottleReason::HwThermalSlowdown,
        ThrottleReason::HwPowerBrakeSlowdown,
    ];
    let is_told_better =
        reason == ThrottleReason::HwSlowdown && given.iter().any(|other| says_more.contains(other));
    given.contains(&reason) && !is_told_better
}

fn finding(view: &View<'_>, reasons: Vec<ThrottleReason>) -> Finding {
    let causes: Vec<String> = reasons.iter().map(|reason| cause(*reason, view)).collect();
    Finding {
        severity: reasons
            .iter()
            .map(|reason| severity(*reason))
            .max()
            .unwrap_or(Severity::Notice),
        text: format!("Clocks reduced: {}.", text::list(&causes)),
        kind: ConditionKind::Throttled {
            reasons,
            limit_watts: view.fresh(&view.sample.power.limit_watts).copied(),
            gpu_celsius: view.fresh(&view.sample.temperature.gpu_celsius).copied(),
        },
    }
}

fn severity(reason: ThrottleReason) -> Severity {
    match reason {
        ThrottleReason::HwThermalSlowdown => Severity::Critical,
        ThrottleReason::HwPowerBrakeSlowdown
        | ThrottleReason::HwSlowdown
        | ThrottleReason::SwThermalSlowdown => Severity::Warning,
        _ => Severity::Notice,
    }
}

fn cause(reason: ThrottleReason, view: &View<'_>) -> String {
    let at = |celsius: Option<&f64>| {
        celsius.map_or(String::new(), |celsius| format!(" ({celsius:.0} °C)"))
    };
    let heat = at(view.fresh(&view.sample.temperature.gpu_celsius));
    match reason {
        ThrottleReason::HwThermalSlowdown => {
            format!("hardware thermal slowdown{heat}, check the cooling")
        }
        ThrottleReason::SwThermalSlowdown => format!("thermal slowdown{heat}"),
        ThrottleReason::HwPowerBrakeSlowdown => {
            "power brake by the system's power supply".to_owned()
        }
        ThrottleReason::HwSlowdown => {
            "hardware slowdown (temperature, power or voltage)".to_owned()
        }
        ThrottleReason::SyncBoost => "limited by a slower GPU of its sync boost group".to_owned(),
        _ => match view.fresh(&view.sample.power.limit_watts) {
            Some(watts) => format!("power-capped at {watts:.0} W"),
            None => "power-capped".to_owned(),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::{
        super::test_timeline::{START_MS, TestTimeline, event},
        ThrottleReason::*,
        *,
    };
    use crate::model::{GpuSample, Reading};

    fn held(reasons: &[ThrottleReason]) -> impl Fn(&mut GpuSample) {
        |sample| sample.throttle_reasons = Reading::Now(reasons.to_vec())
    }

    #[test]
    fn it_begins_after_three_seconds_in_a_row_and_ends_after_ten() {
        let mut timeline = TestTimeline::new();
        timeline
            .show(2, held(&[SwPowerCap]))
            .show(1, |_| {})
            .show(3, held(&[SwPowerCap]))
            .show(1, |_| {});
        assert_eq!(timeline.take_events(), []);
        timeline
            .show(10, held(&[SwPowerCap]))
            .show(9, |_| {})
            .show(1, held(&[SwPowerCap]))
            .show(30, |_| {});
        assert_eq!(
            timeline.take_events(),
            [event(11, "+throttled"), event(38, "-throttled")]
        );
    }

    #[test]
    fn it_takes_the_same_time_at_any_interval() {
        for (step_ms, begins) in [(100, 3), (10_000, 20)] {
            let mut timeline = TestTimeline::every(step_ms);
            timeline.show(30, held(&[SwPowerCap])).show(30, |_| {});
            let events = timeline.take_events();
            assert_eq!(events[0], event(begins, "+throttled"), "{step_ms}");
            assert_eq!(events.len(), 2);
            assert!((40..=50).contains(&events[1].0), "{step_ms}: {events:?}");
        }
    }

    #[test]
    fn a_gpu_that_is_idle_or_does_as_it_was_told_is_not_throttled() {
        let mut timeline = TestTimeline::new();
        timeline.show(
            60,
            held(&[GpuIdle, ApplicationsClocksSetting, DisplayClockSetting]),
        );
        assert_eq!(timeline.take_events(), []);
    }

    #[test]
    fn reasons_change_within_one_condition_and_do_not_flap() {
        let mut timeline = TestTimeline::new();
        timeline.show(10, held(&[SwPowerCap]));
        assert_eq!(timeline.only().severity, Severity::Notice);
        timeline.show(1, held(&[SwThermalSlowdown]));
        assert_eq!(
            timeline.only().kind,
            ConditionKind::Throttled {
                reasons: vec![SwPowerCap],
                limit_watts: None,
                gpu_celsius: None
            }
        );
        timeline.show(5, held(&[SwThermalSlowdown]));
        let both = ConditionKind::Throttled {
            reasons: vec![SwThermalSlowdown, SwPowerCap],
            limit_watts: None,
            gpu_celsius: None,
        };
        assert_eq!(
            (&timeline.only().kind, timeline.only().severity),
            (&both, Severity::Warning)
        );
        timeline.show(10, held(&[SwThermalSlowdown]));
        assert_eq!(
            timeline.only().kind,
            ConditionKind::Throttled {
                reasons: vec![SwThermalSlowdown],
                limit_watts: None,
                gpu_celsius: None
            }
        );
        assert_eq!(
            timeline.only().since_ms,
            START_MS + 1_000,
            "it is still the same"
        );
        assert_eq!(timeline.take_events(), [event(4, "+throttled")]);
    }

    #[test]
    fn a_slowdown_by_the_hardware_is_named_by_its_cause() {
        let mut timeline = TestTimeline::new();
        timeline.show(10, held(&[HwSlowdown, HwThermalSlowdown]));
        assert_eq!(
            timeline.only().kind,
            ConditionKind::Throttled {
                reasons: vec![HwThermalSlowdown],
                limit_watts: None,
                gpu_celsius: None
            }
        );
        assert_eq!(timeline.only().severity, Severity::Critical);
        let mut timeline = TestTimeline::new();
        timeline.show(10, held(&[HwSlowdown]));
        assert_eq!(
            timeline.only().kind,
            ConditionKind::Throttled {
                reasons: vec![HwSlowdown],
                limit_watts: None,
                gpu_celsius: None
            }
        );
        assert_eq!(timeline.only().severity, Severity::Warning);
    }

    #[test]
    fn it_names_limit_and_heat() {
        let mut timeline = TestTimeline::new();
        timeline.show(10, |sample| {
            held(&[SwPowerCap, SwThermalSlowdown])(sample);
            sample.power.limit_watts = Reading::Now(700.0);
            sample.temperature.gpu_celsius = Reading::Now(86.6);
        });
        let text = "Clocks reduced: thermal slowdown (87 °C) and power-capped at 700 W.";
        assert_eq!(timeline.only().text, text);
        let reasons = vec![SwThermalSlowdown, SwPowerCap];
        let kind = ConditionKind::Throttled {
            reasons,
            limit_watts: Some(700.0),
            gpu_celsius: Some(86.6),
        };
        assert_eq!(timeline.only().kind, kind);
    }
}
