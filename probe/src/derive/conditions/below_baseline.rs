//! The condition that a benchmark was slower than its baseline. The condition lasts until the next
//! run.

use super::{hysteresis::Observation, rule::View};
use crate::{benchmarks::BelowBaseline, model::ConditionKind};

pub(super) fn observe(view: &View<'_>, _: bool) -> Observation<ConditionKind> {
    let Some(BelowBaseline {
        latest, baseline, ..
    }) = view.below_baseline
    else {
        return Observation::Inactive;
    };
    Observation::Active(ConditionKind::BelowBaseline {
        workload: latest.workload.clone(),
        dtype: latest.dtype.clone(),
        median_us: latest.time.median_us,
        baseline_us: baseline.time.median_us,
        measured_ms: latest.at_ms,
        baseline_ms: baseline.at_ms,
    })
}

#[cfg(test)]
mod tests {
    use super::super::test_timeline::{TestTimeline, expected_event};
    use super::*;
    use crate::{
        benchmarks::{Interval, Measurement},
        model::Severity,
    };

    #[test]
    fn condition_lasts_while_result_is_below() {
        let measured = |at_ms, median_us| Measurement {
            workload: "copy".to_owned(),
            dtype: "fp32".to_owned(),
            n: 8,
            at_ms,
            time: Interval {
                median_us,
                low_us: median_us,
                high_us: median_us,
            },
            gpumon: "0.2.0".to_owned(),
            cuda: None,
            limit_watts: None,
            sm_mhz: None,
        };
        let mut timeline = TestTimeline::new();
        timeline.advance_with_sample(1, |_| {});
        let (latest, baseline) = (measured(7, 3000.0), measured(5, 1000.0));
        timeline.tracker.set_below_baseline(Some(BelowBaseline {
            latest,
            baseline,
            ratio: 1.0 / 3.0,
        }));
        timeline.advance_with_sample(2, |_| {});
        assert!(
            timeline
                .only_condition()
                .text
                .contains("copy (fp32) takes 3000 us, compared with 1000 us before (0.33x)")
        );
        assert_eq!(timeline.only_condition().severity, Severity::Warning);
        let ConditionKind::BelowBaseline {
            measured_ms: 7,
            baseline_ms: 5,
            ..
        } = timeline.only_condition().kind
        else {
            panic!()
        };
        timeline.tracker.set_below_baseline(None);
        timeline.advance_with_sample(1, |_| {});
        assert_eq!(
            timeline.take_events(),
            [
                expected_event(2, "+below_baseline"),
                expected_event(4, "-below_baseline")
            ]
        );
    }
}
