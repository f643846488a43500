//! A rule, and the readings that it observes.

use super::{baseline::Baseline, clock::Moment, hysteresis::Observation, text::process_name};
use crate::{
    benchmarks::BelowBaseline,
    model::{Activity, Board, ConditionKind, GpuDetails, GpuSample, Health, Process, Reading},
};

/// An older value tells nothing about now.
const LONGEST_AGE_MS: u64 = 60_000;

/// A process, told apart from others that have had its PID.
pub(super) type ProcessKey = (u32, Option<u64>);

pub(super) fn process_key(process: &Process) -> ProcessKey {
    (process.pid, process.started_ms.value().copied())
}

/// The rule of one condition. The tracker has the hysteresis, the severity and the texts.
pub(super) trait Rule: Send {
    /// Observes one sample. `lasts` is whether the condition lasts, so that it can end at another
    /// threshold than it begins.
    fn observe(&mut self, view: &View<'_>, lasts: bool) -> Observation<ConditionKind>;

    /// Returns when the condition began, if that was before it was first observed.
    fn began_at(&self) -> Option<Moment> {
        None
    }

    /// Forgets earlier samples: the GPU is lost, failed or asleep.
    fn forget(&mut self) {}

    /// Returns the learned values of this GPU, if the rule learns.
    fn baseline(&self) -> Option<&Baseline> {
        None
    }

    /// Takes learned values in place of its own.
    fn restore(&mut self, _baseline: &Baseline) {}
}

/// A rule without a state of its own.
impl<F> Rule for F
where
    F: Fn(&View<'_>, bool) -> Observation<ConditionKind> + Send,
{
    fn observe(&mut self, view: &View<'_>, lasts: bool) -> Observation<ConditionKind> {
        self(view, lasts)
    }
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
    /// Returns the other GPUs of the machine that respond.
    pub(super) fn others(&self) -> impl Iterator<Item = &'a GpuSample> {
        let own = self.sample.index;
        let machine = self.machine.iter();
        machine.filter(move |gpu| gpu.index != own && gpu.health == Health::Ok)
    }

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

    /// Returns the name of a process of this GPU.
    pub(super) fn name_process(&self, pid: u32) -> String {
        let mut processes = self.sample.processes.value().into_iter().flatten();
        let process = processes.find(|process| process.pid == pid);
        process.map_or_else(|| format!("process {pid}"), process_name)
    }

    fn is_fresh(&self, at_ms: u64) -> bool {
        self.now.wall_ms.abs_diff(at_ms) <= LONGEST_AGE_MS
    }
}
