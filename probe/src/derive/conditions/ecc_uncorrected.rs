//! Memory errors were not corrected.

use super::{
    hysteresis::Observation,
    rule::{Finding, PlainRule, Rule, View},
};
use crate::model::{ConditionKind, Severity};

pub(super) fn rule() -> impl Rule {
    PlainRule::new(0, 0, observe)
}

fn observe(view: &View<'_>, _: bool) -> Observation<Finding> {
    match view.detail(|details| &details.ecc.volatile.uncorrected_total) {
        None => Observation::Unknown,
        Some(0) => Observation::Inactive,
        Some(&count) => {
            let errors = if count == 1 { "error" } else { "errors" };
            Observation::Active(Finding {
                severity: Severity::Critical,
                text: format!(
                    "{count} uncorrectable memory {errors} since the driver was loaded: results may be wrong. Reset the \
                     GPU when it is idle."
                ),
                kind: ConditionKind::EccUncorrected { count },
            })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::test_timeline::{TestTimeline, event};
    use super::*;
    use crate::model::Reading;

    #[test]
    fn it_lasts_until_the_driver_counts_anew() {
        let mut timeline = TestTimeline::new();
        let errors = |count| {
            move |details: &mut crate::model::GpuDetails| {
                details.ecc.volatile.uncorrected_total = Reading::Now(count);
            }
        };
        timeline
            .show_details(5, errors(0))
            .show_details(5, errors(1));
        assert_eq!(timeline.only().severity, Severity::Critical);
        assert!(
            timeline
                .only()
                .text
                .starts_with("1 uncorrectable memory error since"),
            "{}",
            timeline.only().text
        );
        timeline.show_details(1, errors(3));
        assert_eq!(
            timeline.only().kind,
            ConditionKind::EccUncorrected { count: 3 }
        );
        timeline.show_details(1, errors(0));
        assert_eq!(
            timeline.take_events(),
            [event(6, "+ecc_uncorrected"), event(12, "-ecc_uncorrected")]
        );
    }
}
