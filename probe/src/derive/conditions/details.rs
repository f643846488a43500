//! Conditions that the driver reports in the details: uncorrected memory errors, rows and pages of
//! memory that wait to be replaced, and a requested recovery.

use super::{
    hysteresis::Observation::{self, Active, Inactive, Unknown},
    rule::View,
};
use crate::model::{ConditionKind, RecoveryAction};

type Seen = Observation<ConditionKind>;

pub(super) fn observe_ecc(view: &View<'_>, _: bool) -> Seen {
    match view.detail(|details| &details.ecc.volatile.uncorrected_total) {
        None => Unknown,
        Some(0) => Inactive,
        Some(&count) => Active(ConditionKind::EccUncorrected { count }),
    }
}

pub(super) fn observe_rows(view: &View<'_>, _: bool) -> Seen {
    match view.detail(|details| &details.remapped_rows) {
        None => Unknown,
        Some(rows) if !rows.failed && !rows.pending => Inactive,
        Some(rows) => Active(ConditionKind::RowRemap {
            pending: rows.pending,
            failed: rows.failed,
        }),
    }
}

pub(super) fn observe_pages(view: &View<'_>, _: bool) -> Seen {
    match view.detail(|details| &details.retired_pages) {
        None => Unknown,
        Some(pages) if !pages.pending => Inactive,
        Some(_) => Active(ConditionKind::PageRetirementPending),
    }
}

pub(super) fn observe_recovery(view: &View<'_>, _: bool) -> Seen {
    match view.detail(|details| &details.recovery_action) {
        None => Unknown,
        Some(RecoveryAction::None) => Inactive,
        Some(&action) => Active(ConditionKind::RecoveryNeeded { action }),
    }
}

#[cfg(test)]
mod tests {
    use super::{
        super::test_timeline::{TestTimeline, event},
        *,
    };
    use crate::model::{GpuDetails, Reading, RemappedRows, RetiredPages, Severity};

    #[test]
    fn errors_last_until_the_driver_counts_anew() {
        let mut timeline = TestTimeline::new();
        let errors = |count| {
            move |details: &mut GpuDetails| {
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

    #[test]
    fn failed_row_remapping_is_worse_than_pending() {
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

    #[test]
    fn page_retirement_lasts_while_pages_wait() {
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

    #[test]
    fn recovery_is_needed_while_the_driver_asks() {
        let asks = |action| {
            move |details: &mut GpuDetails| {
                details.recovery_action = Reading::Now(action);
            }
        };
        let mut timeline = TestTimeline::new();
        timeline.show_details(1, asks(RecoveryAction::None));
        for action in [
            RecoveryAction::DrainP2p,
            RecoveryAction::GpuReset,
            RecoveryAction::NodeReboot,
        ] {
            timeline.show_details(1, asks(action));
            assert_eq!(
                timeline.only().kind,
                ConditionKind::RecoveryNeeded { action }
            );
        }
        assert_eq!(timeline.only().severity, Severity::Critical);
        timeline.show_details(1, asks(RecoveryAction::None));
        assert_eq!(
            timeline.take_events(),
            [event(2, "+recovery_needed"), event(5, "-recovery_needed")]
        );
    }
}
