//! The condition that clocks are reduced.

use super::rule::{Hysteresis, Moment, Observation, Rule, View};
use crate::model::{ConditionKind, REASONS, ReasonInfo};

pub(super) const BEGIN_AFTER_MS: u64 = 3_000;

const END_AFTER_MS: u64 = 10_000;

/// The rule for reduced clocks. Each throttle reason has its own hysteresis, so that the condition
/// neither flaps nor contains outdated reasons.
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
        let given = view.fresh_value(&view.sample.throttle_reasons);
        let (mut reasons, mut began) = (Vec::new(), Vec::new());
        let of_concern = |info: &&ReasonInfo| info.severity.is_some();
        let concerns = REASONS.iter().filter(of_concern);
        for (ReasonInfo { reason, .. }, hysteresis) in concerns.zip(&mut self.hysteresis) {
            let observation = match given {
                None => Observation::Unknown,
                Some(given) if given.contains(reason) && !reason.is_explained_by(given) => {
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
            .reduce(|one, other| if other.ms_since(one) > 0 { one } else { other });
        self.since = earliest.map(|earliest| self.since.unwrap_or(earliest));
        if reasons.is_empty() {
            return Observation::Inactive;
        }
        Observation::Active(ConditionKind::Throttled {
            reasons,
            limit_watts: view.fresh_value(&view.sample.power.limit_watts).copied(),
            gpu_celsius: view
                .fresh_value(&view.sample.temperature.gpu_celsius)
                .copied(),
        })
    }

    fn earlier_start(&self) -> Option<Moment> {
        self.since
    }

    fn forget(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use super::{
        super::test_timeline::{START_MS, TestTimeline, expected_event},
        *,
    };
    use crate::model::{
        GpuSample, Reading, Severity,
        ThrottleReason::{self, *},
    };

    fn set_throttle_reasons(reasons: &[ThrottleReason]) -> impl Fn(&mut GpuSample) {
        |sample| sample.throttle_reasons = Reading::Now(reasons.to_vec())
    }

    #[test]
    fn throttling_starts_and_ends_after_delay() {
        let mut timeline = TestTimeline::new();
        timeline
            .advance_with_sample(2, set_throttle_reasons(&[SwPowerCap]))
            .advance_with_sample(1, |_| {})
            .advance_with_sample(3, set_throttle_reasons(&[SwPowerCap]))
            .advance_with_sample(1, |_| {});
        assert_eq!(timeline.take_events(), []);
        timeline
            .advance_with_sample(10, set_throttle_reasons(&[SwPowerCap]))
            .advance_with_sample(9, |_| {})
            .advance_with_sample(1, set_throttle_reasons(&[SwPowerCap]))
            .advance_with_sample(30, |_| {});
        assert_eq!(
            timeline.take_events(),
            [
                expected_event(11, "+throttled"),
                expected_event(38, "-throttled")
            ]
        );
    }

    #[test]
    fn throttling_delays_do_not_depend_on_sampling_interval() {
        for (step_ms, begins) in [(100, 3), (10_000, 20)] {
            let mut timeline = TestTimeline::with_step_ms(step_ms);
            timeline
                .advance_with_sample(30, set_throttle_reasons(&[SwPowerCap]))
                .advance_with_sample(30, |_| {});
            let events = timeline.take_events();
            assert_eq!(events[0], expected_event(begins, "+throttled"), "{step_ms}");
            assert_eq!(events.len(), 2);
            assert!((40..=50).contains(&events[1].0), "{step_ms}: {events:?}");
        }
    }

    #[test]
    fn throttling_by_idling_or_settings_is_not_reported() {
        let mut timeline = TestTimeline::new();
        timeline.advance_with_sample(
            60,
            set_throttle_reasons(&[GpuIdle, ApplicationsClocksSetting, DisplayClockSetting]),
        );
        assert_eq!(timeline.take_events(), []);
    }

    #[test]
    fn reasons_change_within_one_condition() {
        let mut timeline = TestTimeline::new();
        timeline.advance_with_sample(10, set_throttle_reasons(&[SwPowerCap]));
        assert_eq!(timeline.only_condition().severity, Severity::Notice);
        timeline.advance_with_sample(1, set_throttle_reasons(&[SwThermalSlowdown]));
        assert_eq!(
            timeline.only_condition().kind,
            ConditionKind::Throttled {
                reasons: vec![SwPowerCap],
                limit_watts: None,
                gpu_celsius: None
            }
        );
        timeline.advance_with_sample(5, set_throttle_reasons(&[SwThermalSlowdown]));
        let both = ConditionKind::Throttled {
            reasons: vec![SwThermalSlowdown, SwPowerCap],
            limit_watts: None,
            gpu_celsius: None,
        };
        assert_eq!(
            (
                &timeline.only_condition().kind,
                timeline.only_condition().severity
            ),
            (&both, Severity::Warning)
        );
        timeline.advance_with_sample(10, set_throttle_reasons(&[SwThermalSlowdown]));
        assert_eq!(
            timeline.only_condition().kind,
            ConditionKind::Throttled {
                reasons: vec![SwThermalSlowdown],
                limit_watts: None,
                gpu_celsius: None
            }
        );
        assert_eq!(
            timeline.only_condition().since_ms,
            START_MS + 1_000,
            "it is still the same"
        );
        assert_eq!(timeline.take_events(), [expected_event(4, "+throttled")]);
    }

    #[test]
    fn hardware_slowdown_is_named_by_its_cause() {
        let mut timeline = TestTimeline::new();
        timeline.advance_with_sample(10, set_throttle_reasons(&[HwSlowdown, HwThermalSlowdown]));
        assert_eq!(
            timeline.only_condition().kind,
            ConditionKind::Throttled {
                reasons: vec![HwThermalSlowdown],
                limit_watts: None,
                gpu_celsius: None
            }
        );
        assert_eq!(timeline.only_condition().severity, Severity::Critical);
        let mut timeline = TestTimeline::new();
        timeline.advance_with_sample(10, set_throttle_reasons(&[HwSlowdown]));
        assert_eq!(
            timeline.only_condition().kind,
            ConditionKind::Throttled {
                reasons: vec![HwSlowdown],
                limit_watts: None,
                gpu_celsius: None
            }
        );
        assert_eq!(timeline.only_condition().severity, Severity::Warning);
    }

    #[test]
    fn throttling_text_names_power_limit_and_temperature() {
        let mut timeline = TestTimeline::new();
        timeline.advance_with_sample(10, |sample| {
            set_throttle_reasons(&[SwPowerCap, SwThermalSlowdown])(sample);
            sample.power.limit_watts = Reading::Now(700.0);
            sample.temperature.gpu_celsius = Reading::Now(86.6);
        });
        let text = "Clocks reduced: thermal slowdown (87 °C) and power-capped at 700 W.";
        assert_eq!(timeline.only_condition().text, text);
        let reasons = vec![SwThermalSlowdown, SwPowerCap];
        let kind = ConditionKind::Throttled {
            reasons,
            limit_watts: Some(700.0),
            gpu_celsius: Some(86.6),
        };
        assert_eq!(timeline.only_condition().kind, kind);
    }
}
