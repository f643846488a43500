//! Conditions of driver errors, until they are over.

use super::clock::Moment;
use crate::{
    model::{Condition, ConditionKind, XidReport},
    vendor::ErrorInfo,
};

const PROGRAM_ERROR_MS: u64 = 60_000;

pub(super) const OTHER_ERROR_MS: u64 = 600_000;

/// A GPU that reports so many codes is not better described by more.
const MOST_CODES: usize = 32;

/// The driver errors of one GPU that are not over.
#[derive(Debug, Default)]
pub(super) struct DriverErrors {
    raised: Vec<Raised>,
}

#[derive(Debug)]
struct Raised {
    condition: Condition,
    code: u32,
    count: u32,
    by_program: bool,
    last: Moment,
}

impl DriverErrors {
    /// Raises the condition of a code, or renews it. Returns the one that began, and the one that
    /// was dropped for it.
    pub(super) fn raise(
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
        let raised = Raised {
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
        let dropped = (self.raised.len() >= MOST_CODES).then(|| self.raised.remove(0).condition);
        self.raised.push(raised);
        (Some(began), dropped)
    }

    /// Those that are over by now. While the driver asks for a recovery, only programs' mistakes
    /// end.
    pub(super) fn end_quiet(&mut self, now: Moment, needs_recovery: bool) -> Vec<Condition> {
        let is_over = |raised: &mut Raised| {
            let quiet_ms = now.since(raised.last);
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

    /// All of them, since the GPU was reset.
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
