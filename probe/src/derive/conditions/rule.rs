//! What a rule looks at, and what it says.

use super::{
    clock::Moment,
    spell::{Sight, Spell},
};
use crate::model::{Activity, Board, Condition, ConditionKind, GpuDetails, GpuSample, Reading, Severity};

/// An older value tells nothing about now.
const LONGEST_AGE_MS: u64 = 60_000;

/// One kind of condition.
pub(super) trait Rule: Send {
    /// The condition as it is now, if it lasts.
    fn look(&mut self, view: &View<'_>) -> Option<Condition>;

    /// The GPU is gone or asleep: what was seen of it is over.
    fn forget(&mut self);
}

/// What there is to see of a GPU.
pub(super) struct View<'a> {
    pub(super) sample: &'a GpuSample,
    pub(super) board: &'a Board,
    pub(super) details: Option<&'a GpuDetails>,
    pub(super) now: Moment,
}

impl<'a> View<'a> {
    /// A value that is not older than a minute.
    pub(super) fn fresh<'r, T>(&self, reading: &'r Reading<T>) -> Option<&'r T> {
        match reading {
            Reading::Now(value) => Some(value),
            Reading::Earlier { value, at_ms } if self.is_fresh(*at_ms) => Some(value),
            Reading::Earlier { .. } | Reading::Absent(_) => None,
        }
    }

    /// A value among the details that is not older than a minute.
    pub(super) fn detail<T>(&self, take: impl FnOnce(&'a GpuDetails) -> &'a Reading<T>) -> Option<&'a T> {
        let details = self.details.filter(|details| self.is_fresh(details.at_ms))?;
        self.fresh(take(details))
    }

    /// A number of the hardware's counters that is not older than a minute.
    pub(super) fn activity(&self, take: impl FnOnce(&Activity) -> &Reading<f64>) -> Option<f64> {
        self.fresh(take(self.fresh(&self.sample.activity)?)).copied()
    }

    fn is_fresh(&self, at_ms: u64) -> bool {
        self.now.wall_ms.abs_diff(at_ms) <= LONGEST_AGE_MS
    }
}

/// What is the matter, without since when.
#[derive(Debug, Clone)]
pub(super) struct Matter {
    pub(super) severity: Severity,
    pub(super) text: String,
    pub(super) kind: ConditionKind,
}

impl Matter {
    pub(super) fn since(&self, since: Moment) -> Condition {
        let Self { severity, text, kind } = self.clone();
        Condition { since_ms: since.wall_ms, severity, text, kind }
    }
}

/// A rule that remembers nothing but whether its condition lasts, which it is told, so that it can end at another
/// threshold than it begins.
pub(super) struct PlainRule {
    spell: Spell<Matter>,
    look: fn(&View<'_>, bool) -> Sight<Matter>,
}

impl PlainRule {
    pub(super) fn new(begin_after_ms: u64, end_after_ms: u64, look: fn(&View<'_>, bool) -> Sight<Matter>) -> Self {
        Self { spell: Spell::new(begin_after_ms, end_after_ms), look }
    }
}

impl Rule for PlainRule {
    fn look(&mut self, view: &View<'_>) -> Option<Condition> {
        let sight = (self.look)(view, self.spell.lasts());
        let (since, matter) = self.spell.update(sight, view.now)?;
        Some(matter.since(since))
    }

    fn forget(&mut self) {
        self.spell.forget();
    }
}
