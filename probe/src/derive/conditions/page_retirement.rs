//! Pages of memory wait to be taken out of use.

use super::{
    hysteresis::Observation,
    rule::{Finding, PlainRule, Rule, View},
};
use crate::model::{ConditionKind, Severity};

pub(super) fn rule() -> impl Rule {
    PlainRule::new(0, 0, observe)
}

fn observe(view: &View<'_>, _: bool) -> Observation<Finding> {
    match view.detail(|details| &details.retired_pages) {
        None => Observation::Unknown,
        Some(pages) if !pages.pending => Observation::Inactive,
        Some(_) => Observation::Active(Finding {
            severity: Severity::Warning,
            text: "Page retirement pending: reset the GPU when it is idle.".to_owned(),
            kind: ConditionKind::PageRetirementPending,
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::super::test_timeline::{TestTimeline, event};
    use crate::model::{GpuDetails, Reading, RetiredPages};

    #[test]
    fn it_lasts_while_pages_wait() {
        let pages = |pending| {
            move |details: &mut GpuDetails| {
                details.retired_pages = Reading::Now(RetiredPages {
                    single_bit: 2,
                    double_bit: 0,
                    pending,
                });
            }
        };
        let mut timeline = TestTimeline::new();
        timeline
            .show_details(1, pages(false))
            .show_details(1, pages(true))
            .show_details(1, pages(false));
        let events = [
            event(2, "+page_retirement_pending"),
            event(3, "-page_retirement_pending"),
        ];
        assert_eq!(timeline.take_events(), events);
    }
}
