//! The condition that kernels run all the time but use little of the GPU.
//!
//! Low occupancy, or idle tensor cores while multiprocessors are busy, is not reported, because it
//! is normal for many efficient programs.

use std::collections::VecDeque;

use super::rule::{Observation, Rule, View};
use crate::{
    model::{ConditionKind, Reading},
    stat::Window,
};

/// The period over which the values are averaged.
pub(super) const WINDOW_MS: u64 = 60_000;

/// After a longer gap between two windows of limits, averaging starts again.
const MAX_GAP_MS: u64 = 30_000;

/// Averages the evidence of the GPU's limits.
#[derive(Default)]
pub(super) struct HardlyUsed {
    parts: VecDeque<Part>,
    last_ms: u64,
}

/// The evidence of one window of limits.
#[derive(Debug, Clone, Copy)]
struct Part {
    ms: u64,
    gpu_percent: f64,
    sm_percent: f64,
    tensor_percent: Option<f64>,
}

impl HardlyUsed {
    fn add(&mut self, part: Part) {
        self.parts.push_back(part);
        while self
            .parts
            .front()
            .is_some_and(|first| self.total_ms().saturating_sub(first.ms) >= WINDOW_MS)
        {
            self.parts.pop_front();
        }
    }

    fn total_ms(&self) -> u64 {
        self.parts.iter().map(|part| part.ms).sum()
    }

    /// Returns the average of a value, rounded to a tenth of a percent.
    fn compute_average(&self, value: impl Fn(&Part) -> Option<f64>) -> Option<f64> {
        let mut window = Window::default();
        for part in &self.parts {
            window.add(value(part)?, part.ms as f64);
        }
        Some((window.mean()? * 10.0).round() / 10.0)
    }
}

impl Rule for HardlyUsed {
    fn observe(&mut self, view: &View<'_>, _: bool) -> Observation<ConditionKind> {
        let limits = match &view.sample.limits {
            Reading::Now(limits) => limits,
            Reading::Earlier { .. } => return Observation::Inconclusive,
            Reading::Absent(_) => return Observation::Unknown,
        };
        let evidence = &limits.evidence;
        let (Some(gpu_percent), Some(sm_percent)) = (evidence.gpu_percent, evidence.sm_percent)
        else {
            return Observation::Unknown;
        };
        let at_ms = view.sample.at_ms;
        let gap_ms = at_ms.saturating_sub(std::mem::replace(&mut self.last_ms, at_ms));
        if gap_ms.saturating_sub(limits.window_ms) > MAX_GAP_MS {
            self.parts.clear();
        }
        self.add(Part {
            ms: limits.window_ms,
            gpu_percent,
            sm_percent,
            tensor_percent: evidence.tensor_percent,
        });
        if self.total_ms() < WINDOW_MS {
            return Observation::Inconclusive;
        }
        let (Some(gpu_percent), Some(sm_percent)) = (
            self.compute_average(|part| Some(part.gpu_percent)),
            self.compute_average(|part| Some(part.sm_percent)),
        ) else {
            return Observation::Unknown;
        };
        if gpu_percent >= 95.0 && sm_percent < 25.0 {
            Observation::Active(ConditionKind::HardlyUsed {
                gpu_percent,
                sm_percent,
                tensor_percent: self.compute_average(|part| part.tensor_percent),
            })
        } else if gpu_percent < 90.0 || sm_percent > 30.0 {
            Observation::Inactive
        } else {
            Observation::Inconclusive
        }
    }

    fn forget(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use super::super::test_timeline::{TestTimeline, expected_event};
    use super::*;
    use crate::{
        derive::examples,
        model::{GpuSample, Reading},
    };

    fn set_utilization(
        gpu_percent: f64,
        sm_percent: f64,
        tensor_percent: f64,
    ) -> impl Fn(&mut GpuSample) {
        move |sample| {
            sample.utilization.gpu_percent = Reading::Now(gpu_percent);
            sample.activity = Reading::Now(examples::make_activity(sm_percent, tensor_percent));
        }
    }

    #[test]
    fn low_use_is_reported_after_a_minute() {
        let mut timeline = TestTimeline::new();
        timeline.advance_with_sample(120, set_utilization(99.0, 8.04, 0.0));
        assert_eq!(timeline.take_events(), [expected_event(61, "+hardly_used")]);
        let condition = timeline.only_condition();
        let expected = ConditionKind::HardlyUsed {
            gpu_percent: 99.0,
            sm_percent: 8.0,
            tensor_percent: Some(0.0),
        };
        assert_eq!(condition.kind, expected);
        let text = "Low SM activity: kernels run 99 % of the time on 8 % of the SMs and 0 % of the \
                    tensor cores. The kernels are small, or wait for data.";
        assert_eq!(condition.text, text);
    }

    #[test]
    fn low_use_is_determined_by_one_minute_average() {
        let mut timeline = TestTimeline::new();
        // On average, 24 % of the multiprocessors are active.
        timeline.advance_with_sample(600, |sample| {
            set_utilization(
                98.0,
                if sample.at_ms / 1000 % 5 == 0 {
                    60.0
                } else {
                    15.0
                },
                0.0,
            )(sample);
        });
        assert_eq!(
            timeline.take_events().len(),
            1,
            "{:?}",
            timeline.last.conditions
        );
        timeline
            .advance_with_sample(5, set_utilization(98.0, 90.0, 0.0))
            .advance_with_sample(20, set_utilization(98.0, 15.0, 0.0));
        assert_eq!(timeline.take_events(), [], "a burst of five seconds");
        timeline.advance_with_sample(30, set_utilization(98.0, 90.0, 0.0));
        assert_eq!(
            timeline.take_events().len(),
            1,
            "{:?}",
            timeline.last.conditions
        );
        assert_eq!(timeline.last.conditions, []);
    }

    #[test]
    fn detection_delay_and_stored_values_ignore_sampling_interval() {
        for step_ms in [100, 10_000] {
            let mut timeline = TestTimeline::with_step_ms(step_ms);
            timeline.advance_with_sample(300, set_utilization(99.0, 8.0, 0.0));
            let events = timeline.take_events();
            assert!(
                events.len() == 1 && (60..=75).contains(&events[0].0),
                "{step_ms}: {events:?}"
            );
        }
    }

    #[test]
    fn busy_or_idle_gpu_is_not_reported() {
        for (gpu, sm) in [(99.0, 60.0), (60.0, 10.0), (0.0, 0.0)] {
            let mut timeline = TestTimeline::new();
            timeline.advance_with_sample(600, set_utilization(gpu, sm, 0.0));
            assert_eq!(timeline.take_events(), [], "{gpu} {sm}");
        }
    }

    #[test]
    fn rarely_read_counters_give_same_low_use_result() {
        let dated = |sample: &mut GpuSample, sm_percent| {
            set_utilization(99.0, sm_percent, 0.0)(sample);
            let counted = std::mem::replace(
                &mut sample.activity,
                Reading::Absent(crate::model::Absence::NoAnswer),
            );
            sample.activity = counted.with_time(sample.at_ms / 10_000 * 10_000);
        };
        let mut timeline = TestTimeline::new();
        timeline.advance_with_sample(300, |sample| dated(sample, 28.0));
        assert_eq!(timeline.take_events(), [], "{:?}", timeline.last.conditions);
        timeline.advance_with_sample(90, |sample| dated(sample, 8.0));
        assert_eq!(
            timeline.take_events().len(),
            1,
            "{:?}",
            timeline.last.conditions
        );
    }

    #[test]
    fn gap_in_samples_restarts_low_use_window() {
        let mut timeline = TestTimeline::new();
        timeline.advance_with_sample(50, set_utilization(99.0, 8.0, 0.0));
        timeline.advance_with_sample(40, |sample| {
            sample.activity = Reading::Absent(crate::model::Absence::NoAnswer);
        });
        timeline.advance_with_sample(50, set_utilization(99.0, 8.0, 0.0));
        assert_eq!(timeline.take_events(), []);
        timeline.advance_with_sample(20, set_utilization(99.0, 8.0, 0.0));
        assert_eq!(timeline.take_events().len(), 1);
    }
}
