//! The condition that kernels run all the time but use little of the GPU.
//!
//! Low occupancy, or idle tensor cores while multiprocessors are busy, is not reported, because it
//! is normal for many efficient programs.

use std::collections::VecDeque;

use super::rule::{Moment, Observation, Rule, View};
use crate::model::ConditionKind;

/// The period over which the values are averaged.
pub(super) const WINDOW_MS: u64 = 60_000;

/// The averaging window is divided into parts of this length, and only the sums of each part are
/// kept, so that ten samples per second need no more memory than one sample per second.
const PART_MS: u64 = 5_000;

/// The longest period that one reading can represent. After a longer gap, averaging starts again.
const MAX_GAP_MS: u64 = 30_000;

/// The maximum number of samples to keep between two readings of the hardware counters. If there
/// are more, the counters are no longer being read.
const MAX_WAITING: usize = 600;

#[derive(Default)]
pub(super) struct HardlyUsed {
    parts: VecDeque<Part>,
    last: Option<Moment>,
    /// The time of the latest reading of the hardware counters. `waiting` contains the utilization
    /// of each later sample.
    counted_ms: Option<u64>,
    waiting: Vec<f64>,
}

/// A part of the averaging window. The sums are in percent times milliseconds.
#[derive(Debug, Clone, Copy, Default)]
struct Part {
    ms: u64,
    gpu: f64,
    sm: f64,
    tensor: Option<f64>,
}

impl HardlyUsed {
    /// Adds the values for the time since the previous reading of the hardware counters.
    fn add_utilization(&mut self, now: Moment, gpu: f64, sm: f64, tensor: Option<f64>) {
        let ms = self.last.replace(now).map_or(0, |last| now.ms_since(last));
        if ms > MAX_GAP_MS {
            self.parts.clear();
            return;
        }
        let time = ms as f64;
        match self.parts.back_mut().filter(|part| part.ms < PART_MS) {
            Some(part) => {
                let tensor = part
                    .tensor
                    .zip(tensor)
                    .map(|(sum, tensor)| sum + tensor * time);
                *part = Part {
                    ms: part.ms.saturating_add(ms),
                    gpu: part.gpu + gpu * time,
                    sm: part.sm + sm * time,
                    tensor,
                };
            }
            None => self.parts.push_back(Part {
                ms,
                gpu: gpu * time,
                sm: sm * time,
                tensor: tensor.map(|tensor| tensor * time),
            }),
        }
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
}

impl Rule for HardlyUsed {
    fn observe(&mut self, view: &View<'_>, _: bool) -> Observation<ConditionKind> {
        let gpu = view.fresh_value(&view.sample.utilization.gpu_percent);
        let Some((&gpu, sm)) = gpu.zip(view.fresh_activity(|activity| &activity.sm_percent)) else {
            return Observation::Unknown;
        };
        self.waiting.push(gpu);
        let counted_ms = view.sample.activity.read_at_ms(view.sample.at_ms);
        if self.counted_ms.replace(counted_ms) == Some(counted_ms) {
            self.waiting.truncate(MAX_WAITING);
            return Observation::Inconclusive;
        }
        let gpu = self.waiting.iter().sum::<f64>() / self.waiting.len() as f64;
        self.waiting.clear();
        self.add_utilization(
            view.now,
            gpu,
            sm,
            view.fresh_activity(|activity| &activity.tensor_percent),
        );
        let total_ms = self.total_ms();
        if total_ms < WINDOW_MS {
            return Observation::Inconclusive;
        }
        let average =
            |share: fn(&Part) -> f64| self.parts.iter().map(share).sum::<f64>() / total_ms as f64;
        let tensor: Option<f64> = self.parts.iter().map(|part| part.tensor).sum();
        let (gpu, sm) = (average(|part| part.gpu), average(|part| part.sm));
        if gpu >= 95.0 && sm < 25.0 {
            let tenth = |percent: f64| (percent * 10.0).round() / 10.0;
            Observation::Active(ConditionKind::HardlyUsed {
                gpu_percent: tenth(gpu),
                sm_percent: tenth(sm),
                tensor_percent: tensor.map(|tensor| tenth(tensor / total_ms as f64)),
            })
        } else if gpu < 90.0 || sm > 30.0 {
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
        let mut rule = HardlyUsed::default();
        let mut clock = super::super::rule::Clock::default();
        for tenth in 0..100_000 {
            rule.add_utilization(
                clock.advance(1_000_000 + tenth * 100, true),
                99.0,
                8.0,
                None,
            );
        }
        assert!(rule.parts.len() <= 14, "{}", rule.parts.len());
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
