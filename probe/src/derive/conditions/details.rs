//! Conditions based on the driver's details: uncorrected memory errors, memory rows or pages that
//! wait to be replaced, and a requested recovery.

use super::{
    hysteresis::Observation::{self, Active, Inactive, Unknown},
    rule::View,
};
use crate::model::{ConditionKind, RecoveryAction};

type ConditionObservation = Observation<ConditionKind>;

pub(super) fn observe_ecc(view: &View<'_>, _: bool) -> ConditionObservation {
    match view.fresh_detail(|details| &details.ecc.volatile.uncorrected_total) {
        None => Unknown,
        Some(0) => Inactive,
        Some(&count) => Active(ConditionKind::EccUncorrected { count }),
    }
}

pub(super) fn observe_rows(view: &View<'_>, _: bool) -> ConditionObservation {
    match view.fresh_detail(|details| &details.remapped_rows) {
        None => Unknown,
        Some(rows) if !rows.failed && !rows.pending => Inactive,
        Some(rows) => Active(ConditionKind::RowRemap {
            pending: rows.pending,
            failed: rows.failed,
        }),
    }
}

pub(super) fn observe_pages(view: &View<'_>, _: bool) -> ConditionObservation {
    match view.fresh_detail(|details| &details.retired_pages) {
        None => Unknown,
        Some(pages) if !pages.pending => Inactive,
        Some(_) => Active(ConditionKind::PageRetirementPending),
    }
}

pub(super) fn observe_recovery(view: &View<'_>, _: bool) -> ConditionObservation {
    match view.fresh_detail(|details| &details.recovery_action) {
        None => Unknown,
        Some(RecoveryAction::None) => Inactive,
        Some(&action) => Active(ConditionKind::RecoveryNeeded { action }),
    }
}

#[cfg(test)]
mod tests {
    use super::{
        super::test_timeline::{TestTimeline, expected_event},
        *,
    };
    use crate::model::{GpuDetails, Reading, RemappedRows, RetiredPages, Severity};

    #[test]
    fn ecc_errors_last_until_counter_reset() {
        let mut timeline = TestTimeline::new();
        let errors = |count| {
            move |details: &mut GpuDetails| {
                details.ecc.volatile.uncorrected_total = Reading::Now(count);
            }
        };
        timeline
            .advance_with_details(5, errors(0))
            .advance_with_details(5, errors(1));
        assert_eq!(timeline.only_condition().severity, Severity::Critical);
        assert!(
            timeline
                .only_condition()
                .text
                .starts_with("1 uncorrectable memory error since"),
            "{}",
            timeline.only_condition().text
        );
        timeline.advance_with_details(1, errors(3));
        assert_eq!(
            timeline.only_condition().kind,
            ConditionKind::EccUncorrected { count: 3 }
        );
        timeline.advance_with_details(1, errors(0));
        assert_eq!(
            timeline.take_events(),
            [
                expected_event(6, "+ecc_uncorrected"),
                expected_event(12, "-ecc_uncorrected")
            ]
        );
    }

    #[test]
    fn failed_row_remapping_is_worse_than_pending_one() {
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
            .advance_with_details(1, rows(false, false))
            .advance_with_details(1, rows(true, false));
        assert_eq!(timeline.only_condition().severity, Severity::Warning);
        timeline.advance_with_details(1, rows(true, true));
        assert_eq!(
            timeline.only_condition().kind,
            ConditionKind::RowRemap {
                pending: true,
                failed: true
            }
        );
        assert_eq!(timeline.only_condition().severity, Severity::Critical);
        timeline.advance_with_details(1, rows(false, false));
        assert_eq!(
            timeline.take_events(),
            [
                expected_event(2, "+row_remap"),
                expected_event(4, "-row_remap")
            ]
        );
    }

    #[test]
    fn page_retirement_lasts_while_pages_are_pending() {
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
            .advance_with_details(1, pages(false))
            .advance_with_details(1, pages(true))
            .advance_with_details(1, pages(false));
        let events = [
            expected_event(2, "+page_retirement_pending"),
            expected_event(3, "-page_retirement_pending"),
        ];
        assert_eq!(timeline.take_events(), events);
    }

    #[test]
    fn recovery_lasts_while_driver_requests_it() {
        let asks = |action| {
            move |details: &mut GpuDetails| {
                details.recovery_action = Reading::Now(action);
            }
        };
        let mut timeline = TestTimeline::new();
        timeline.advance_with_details(1, asks(RecoveryAction::None));
        for action in [
            RecoveryAction::DrainP2p,
            RecoveryAction::GpuReset,
            RecoveryAction::NodeReboot,
        ] {
            timeline.advance_with_details(1, asks(action));
            assert_eq!(
                timeline.only_condition().kind,
                ConditionKind::RecoveryNeeded { action }
            );
        }
        assert_eq!(timeline.only_condition().severity, Severity::Critical);
        timeline.advance_with_details(1, asks(RecoveryAction::None));
        assert_eq!(
            timeline.take_events(),
            [
                expected_event(2, "+recovery_needed"),
                expected_event(5, "-recovery_needed")
            ]
        );
    }
}
