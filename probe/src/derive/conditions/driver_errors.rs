//! Conditions of driver errors.

use super::clock::Moment;
use crate::{
    model::{Condition, ConditionKind, XidReport},
    vendor::ErrorInfo,
};

const PROGRAM_ERROR_MS: u64 = 60_000;

pub(super) const OTHER_ERROR_MS: u64 = 600_000;

/// The maximum number of different error codes for one GPU. More codes would not describe the GPU
/// any better.
const MAX_CODES: usize = 32;

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
    /// Starts the condition for an error code, or renews it. Returns the condition that started,
    /// and the condition that was dropped to make room.
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
        let dropped = (self.raised.len() >= MAX_CODES).then(|| self.raised.remove(0).condition);
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
