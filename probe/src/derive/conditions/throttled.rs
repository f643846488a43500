//! The clocks are reduced.

use super::{
    clock::Moment,
    hysteresis::{Hysteresis, Observation},
    rule::{Rule, View},
};
use crate::model::{ConditionKind, REASONS, ReasonInfo};

pub(super) const BEGIN_AFTER_MS: u64 = 3_000;

const END_AFTER_MS: u64 = 10_000;

/// The rule for reduced clocks. Each reason has its own hysteresis, so that the condition neither
/// flaps nor contains outdated reasons.
pub(super) struct Throttled {
    hysteresis: [Hysteresis<()>; REASONS.len()],
    since: Option<Moment>,
}

impl Default for Throttled {
    fn default() -> Self {
        Self {
            hysteresis: std::array::from_fn(|_| Hysteresis::new(BEGIN_AFTER_MS, END_AFTER_MS)),
            since: None,
        }
    }
}

impl Rule for Throttled {
    fn observe(&mut self, view: &View<'_>, _: bool) -> Observation<ConditionKind> {
        let given = view.fresh(&view.sample.throttle_reasons);
        let (mut reasons, mut began) = (Vec::new(), Vec::new());
        let of_concern = |info: &&ReasonInfo| info.severity.is_some();
        let concerns = REASONS.iter().filter(of_concern);
        for (ReasonInfo { reason, .. }, hysteresis) in concerns.zip(&mut self.hysteresis) {
            let observation = match given {
                None => Observation::Unknown,
                Some(given) if given.contains(reason) && !reason.is_explained(given) => {
                    Observation::Active(())
                }
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
        if reasons.is_empty() {
            return Observation::Inactive;
        }
        Observation::Active(ConditionKind::Throttled {
            reasons,
            limit_watts: view.fresh(&view.sample.power.limit_watts).copied(),
            gpu_celsius: view.fresh(&view.sample.temperature.gpu_celsius).copied(),
        })
    }

    fn began_at(&self) -> Option<Moment> {
        self.since
    }

    fn forget(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use super::{
        super::test_timeline::{START_MS, TestTimeline, event},
        *,
    };
    use crate::model::{
        GpuSample, Reading, Severity,
        ThrottleReason::{self, *},
    };

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
