//! What a rule evaluates, and what it finds.

use super::{
    baseline::Baseline,
    clock::Moment,
    hysteresis::{Hysteresis, Observation},
};
use crate::{
    benchmarks::BelowBaseline,
    model::{
        Activity, Board, Condition, ConditionKind, GpuDetails, GpuSample, Process, Reading,
        Severity,
    },
};

/// An older value tells nothing about now.
const LONGEST_AGE_MS: u64 = 60_000;

/// A process, told apart from others that have had its PID.
pub(super) type ProcessKey = (u32, Option<u64>);

pub(super) fn process_key(process: &Process) -> ProcessKey {
    (process.pid, process.started_ms.value().copied())
}

pub(super) trait Rule: Send {
    /// Evaluates one sample. The condition as it is now, while it lasts.
    fn evaluate(&mut self, view: &View<'_>) -> Option<Condition>;

    /// The GPU is lost, failed or asleep: the condition ends.
    fn forget(&mut self);

    /// What it has learned of this GPU, if it learns.
    fn baseline(&self) -> Option<&Baseline> {
        None
    }

    /// Takes what was learned before in the place of what it has.
    fn restore(&mut self, _baseline: &Baseline) {}
}

pub(super) struct View<'a> {
    pub(super) sample: &'a GpuSample,
    /// All GPUs of the machine, this one too.
    pub(super) machine: &'a [GpuSample],
    pub(super) board: &'a Board,
    pub(super) details: Option<&'a GpuDetails>,
    pub(super) below_baseline: Option<&'a BelowBaseline>,
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
    pub(super) fn detail<T>(
        &self,
        take: impl FnOnce(&'a GpuDetails) -> &'a Reading<T>,
    ) -> Option<&'a T> {
        let details = self
            .details
            .filter(|details| self.is_fresh(details.at_ms))?;
        self.fresh(take(details))
    }

    /// A number of the hardware's counters that is not older than a minute.
    pub(super) fn activity(&self, take: impl FnOnce(&Activity) -> &Reading<f64>) -> Option<f64> {
        self.fresh(take(self.fresh(&self.sample.activity)?))
            .copied()
    }

    fn is_fresh(&self, at_ms: u64) -> bool {
        self.now.wall_ms.abs_diff(at_ms) <= LONGEST_AGE_MS
    }
}

/// A condition without its start time.
#[derive(Debug, Clone)]
pub(super) struct Finding {
    pub(super) severity: Severity,
    pub(super) text: String,
    pub(super) kind: ConditionKind,
}

impl Finding {
    pub(super) fn since(&self, since: Moment) -> Condition {
        let Self {
            severity,
            text,
            kind,
        } = self.clone();
        Condition {
            since_ms: since.wall_ms,
            severity,
            text,
            kind,
        }
    }
}

impl Hysteresis<Finding> {
    /// Applies an observation. The condition, while it lasts.
    pub(super) fn condition(
        &mut self,
        observation: Observation<Finding>,
        now: Moment,
    ) -> Option<Condition> {
        self.update(observation, now)
            .map(|(since, finding)| finding.since(since))
    }
}

/// A rule without a state of its own. `observe` receives whether the condition lasts, so that it can end at another
/// threshold than it begins.
pub(super) struct PlainRule {
    hysteresis: Hysteresis<Finding>,
    observe: fn(&View<'_>, bool) -> Observation<Finding>,
}

impl PlainRule {
    pub(super) fn new(
        begin_after_ms: u64,
        end_after_ms: u64,
        observe: fn(&View<'_>, bool) -> Observation<Finding>,
    ) -> Self {
        Self {
            hysteresis: Hysteresis::new(begin_after_ms, end_after_ms),
            observe,
        }
    }
}

impl Rule for PlainRule {
    fn evaluate(&mut self, view: &View<'_>) -> Option<Condition> {
        let observation = (self.observe)(view, self.hysteresis.lasts());
        self.hysteresis.condition(observation, view.now)
    }

    fn forget(&mut self) {
        self.hysteresis.forget();
    }
}
