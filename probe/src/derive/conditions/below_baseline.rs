//! A benchmark was slower than its baseline. It is what one run has shown, and stays so until the next one.

use super::{
    hysteresis::Observation,
    rule::{Finding, PlainRule, Rule, View},
};
use crate::{
    benchmarks::BelowBaseline,
    model::{ConditionKind, Severity},
    units::three_digits,
};

pub(super) fn rule() -> impl Rule {
    PlainRule::new(0, 0, |view: &View<'_>, _| {
        view.below_baseline.map_or(Observation::Inactive, observe)
    })
}

fn observe(
    BelowBaseline {
        latest,
        baseline,
        ratio,
    }: &BelowBaseline,
) -> Observation<Finding> {
    let (workload, dtype) = (&latest.workload, &latest.dtype);
    let (median_us, baseline_us) = (latest.time.median_us, baseline.time.median_us);
    let text = format!(
        "Below its baseline: {workload} ({dtype}) takes {} us, and took {} us ({ratio:.2}x). Check power limit, clocks and \
         cooling, then run `gpumon bench --baseline` again; `gpumon bench --save-baseline` if the change is intended.",
        three_digits(median_us),
        three_digits(baseline_us),
    );
    let kind = ConditionKind::BelowBaseline {
        workload: workload.clone(),
        dtype: dtype.clone(),
        median_us,
        baseline_us,
        measured_ms: latest.at_ms,
        baseline_ms: baseline.at_ms,
    };
    Observation::Active(Finding {
        severity: Severity::Warning,
        text,
        kind,
    })
}

#[cfg(test)]
mod tests {
    use super::super::test_timeline::{TestTimeline, event};
    use super::*;
    use crate::benchmarks::{Interval, Measurement};

    #[test]
    fn it_lasts_while_the_latest_result_is_below() {
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
        timeline.show(1, |_| {});
        let (latest, baseline) = (measured(7, 3000.0), measured(5, 1000.0));
        timeline.tracker.set_below_baseline(Some(BelowBaseline {
            latest,
            baseline,
            ratio: 1.0 / 3.0,
        }));
        timeline.show(2, |_| {});
        assert!(
            timeline
                .only()
                .text
                .contains("copy (fp32) takes 3000 us, and took 1000 us (0.33x)")
        );
        assert_eq!(timeline.only().severity, Severity::Warning);
        let ConditionKind::BelowBaseline {
            measured_ms: 7,
            baseline_ms: 5,
            ..
        } = timeline.only().kind
        else {
            panic!()
        };
        timeline.tracker.set_below_baseline(None);
        timeline.show(1, |_| {});
        assert_eq!(
            timeline.take_events(),
            [event(2, "+below_baseline"), event(4, "-below_baseline")]
        );
    }
}
