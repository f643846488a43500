//! Rows of memory wait to be replaced, or cannot be.

use super::{
    hysteresis::Observation,
    rule::{Finding, PlainRule, Rule, View},
};
use crate::model::{ConditionKind, Severity};

pub(super) fn rule() -> impl Rule {
    PlainRule::new(0, 0, observe)
}

fn observe(view: &View<'_>, _: bool) -> Observation<Finding> {
    let Some(rows) = view.detail(|details| &details.remapped_rows) else {
        return Observation::Unknown;
    };
    let (severity, text) = match (rows.failed, rows.pending) {
        (false, false) => return Observation::Inactive,
        (true, _) => (
            Severity::Critical,
            "Row remapping failed: no spare rows are left. Replace the board.",
        ),
        (false, true) => (
            Severity::Warning,
            "Row remapping pending: reset the GPU when it is idle.",
        ),
    };
    let kind = ConditionKind::RowRemap {
        pending: rows.pending,
        failed: rows.failed,
    };
    Observation::Active(Finding {
        severity,
        text: text.to_owned(),
        kind,
    })
}

#[cfg(test)]
mod tests {
    use super::super::test_timeline::{TestTimeline, event};
    use super::*;
    use crate::model::{GpuDetails, Reading, RemappedRows};

    #[test]
    fn rows_that_wait_are_a_warning_and_rows_that_cannot_be_replaced_are_worse() {
        let rows = |pending, failed| {
            move |details: &mut GpuDetails| {
                let rows = RemappedRows {
                    correctable: 1,
                    uncorrectable: 0,
                    pending,
                    failed,
                    spare: None,
                };
                details.remapped_rows = Reading::Now(rows);
            }
        };
        let mut timeline = TestTimeline::new();
        timeline
            .show_details(1, rows(false, false))
            .show_details(1, rows(true, false));
        assert_eq!(timeline.only().severity, Severity::Warning);
        timeline.show_details(1, rows(true, true));
        assert_eq!(
            timeline.only().kind,
            ConditionKind::RowRemap {
                pending: true,
                failed: true
            }
        );
        assert_eq!(timeline.only().severity, Severity::Critical);
        timeline.show_details(1, rows(false, false));
        assert_eq!(
            timeline.take_events(),
            [event(2, "+row_remap"), event(4, "-row_remap")]
        );
    }
}
