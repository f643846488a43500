//! The conditions for errors: errors that the driver reports, uncorrected memory errors, memory
//! rows or pages that wait to be replaced, and a requested recovery.

use super::rule::{
    Moment,
    Observation::{self, Active, Inactive, Unknown},
    View,
};
use crate::{
    model::{Condition, ConditionKind, RecoveryAction, XidReport},
    vendor::ErrorInfo,
};

const PROGRAM_ERROR_MS: u64 = 60_000;

pub(super) const OTHER_ERROR_MS: u64 = 600_000;

/// The maximum number of different error codes for one GPU. More codes would not describe the GPU
/// any better.
const MAX_ERROR_CODES: usize = 32;

/// The active driver errors of one GPU.
#[derive(Debug, Default)]
pub(super) struct DriverErrors {
    raised: Vec<RaisedError>,
}

#[derive(Debug)]
struct RaisedError {
    condition: Condition,
    code: u32,
    count: u32,
    by_program: bool,
    last: Moment,
}

impl DriverErrors {
    /// Starts the condition for an error code, or renews it. Returns the started condition, and the
    /// condition that was dropped because there were too many error codes. Either can be `None`.
    pub(super) fn start_or_renew(
        &mut self,
        report: &XidReport,
        info: &ErrorInfo,
        now: Moment,
    ) -> (Option<Condition>, Option<Condition>) {
        let known = self
            .raised
            .iter()
            .position(|raised| raised.code == report.code);
        let before = known.map(|at| &self.raised[at]);
        let count = before.map_or(0, |raised| raised.count).saturating_add(1);
        let raised = RaisedError {
            condition: Condition {
                since_ms: before.map_or(now.wall_ms, |raised| raised.condition.since_ms),
                severity: info.severity,
                text: report.text(),
                kind: ConditionKind::Xid {
                    code: report.code,
                    pid: report.pid,
                    count,
                    last_ms: now.wall_ms,
                },
            },
            code: report.code,
            count,
            by_program: info.by_program,
            last: now,
        };
        if let Some(at) = known {
            self.raised[at] = raised;
            return (None, None);
        }
        let began = raised.condition.clone();
        let dropped =
            (self.raised.len() >= MAX_ERROR_CODES).then(|| self.raised.remove(0).condition);
        self.raised.push(raised);
        (Some(began), dropped)
    }

    /// Ends and returns the conditions whose error has not occurred for a while. While the driver
    /// requests a recovery, only conditions for errors caused by programs end.
    pub(super) fn end_expired(&mut self, now: Moment, needs_recovery: bool) -> Vec<Condition> {
        let is_over = |raised: &mut RaisedError| {
            let quiet_ms = now.ms_since(raised.last);
            if raised.by_program {
                quiet_ms >= PROGRAM_ERROR_MS
            } else {
                quiet_ms >= OTHER_ERROR_MS && !needs_recovery
            }
        };
        self.raised
            .extract_if(.., is_over)
            .map(|raised| raised.condition)
            .collect()
    }

    /// Ends and returns all conditions, because the GPU was reset.
    pub(super) fn end_all(&mut self) -> Vec<Condition> {
        self.raised
            .drain(..)
            .map(|raised| raised.condition)
            .collect()
    }

    pub(super) fn conditions(&self) -> impl Iterator<Item = &Condition> {
        self.raised.iter().map(|raised| &raised.condition)
    }
}

// Conditions that are derived from a GPU's slowly changing details.

type ConditionObservation = Observation<ConditionKind>;

pub(super) fn observe_ecc(view: &View<'_>, _: bool) -> ConditionObservation {
    match view.fresh_detail(|details| &details.ecc.volatile.uncorrected_total) {
        None => Unknown,
        Some(0) => Inactive,
        Some(&count) => Active(ConditionKind::EccUncorrected { count }),
    }
}

pub(super) fn observe_row_remapping(view: &View<'_>, _: bool) -> ConditionObservation {
    match view.fresh_detail(|details| &details.remapped_rows) {
        None => Unknown,
        Some(rows) if !rows.failed && !rows.pending => Inactive,
        Some(rows) => Active(ConditionKind::RowRemap {
            pending: rows.pending,
            failed: rows.failed,
        }),
    }
}

pub(super) fn observe_page_retirement(view: &View<'_>, _: bool) -> ConditionObservation {
    match view.fresh_detail(|details| &details.retired_pages) {
        None => Unknown,
        Some(pages) if !pages.pending => Inactive,
        Some(_) => Active(ConditionKind::PageRetirementPending),
    }
}

pub(super) fn observe_recovery_action(view: &View<'_>, _: bool) -> ConditionObservation {
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
    fn ecc_condition_lasts_until_counter_reset() {
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
    fn failed_row_remapping_is_more_severe_than_pending() {
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
    fn page_retirement_condition_lasts_while_pages_are_pending() {
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
    fn recovery_condition_lasts_while_driver_requests_it() {
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
