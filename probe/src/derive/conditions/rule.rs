//! The trait of rules, and the readings that they observe.

use super::{baseline::Baseline, clock::Moment, hysteresis::Observation, text::process_name};
use crate::{
    benchmarks::BelowBaseline,
    model::{Activity, Board, ConditionKind, GpuDetails, GpuSample, Health, Process, Reading},
};

/// The maximum age of a reading that rules use.
const LONGEST_AGE_MS: u64 = 60_000;

/// The identity of a process: its PID and its start time.
pub(super) type ProcessKey = (u32, Option<u64>);

pub(super) fn process_key(process: &Process) -> ProcessKey {
    (process.pid, process.started_ms.value().copied())
}

/// The rule of one condition. Hysteresis, severity and texts are the tracker's part.
pub(super) trait Rule: Send {
    /// Observes one sample. `lasts` is `true` while the condition lasts, so that it can end at
    /// another threshold than it begins.
    fn observe(&mut self, view: &View<'_>, lasts: bool) -> Observation<ConditionKind>;

    /// Returns the beginning of the condition, if it was before the first observation.
    fn began_at(&self) -> Option<Moment> {
        None
    }

    /// Forgets earlier samples, because the GPU is lost, failed or asleep.
    fn forget(&mut self) {}

    /// Returns the learned baseline of this GPU, if the rule has one.
    fn baseline(&self) -> Option<&Baseline> {
        None
    }

    /// Replaces the learned baseline.
    fn restore(&mut self, _baseline: &Baseline) {}
}

/// A rule without state.
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
    /// All GPUs of the machine, including this one.
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

    /// Returns the value of a reading if it is at most a minute old.
    pub(super) fn fresh<'r, T>(&self, reading: &'r Reading<T>) -> Option<&'r T> {
        match reading {
            Reading::Now(value) => Some(value),
            Reading::Earlier { value, at_ms } if self.is_fresh(*at_ms) => Some(value),
            Reading::Earlier { .. } | Reading::Absent(_) => None,
        }
    }

    /// Returns a value of the details if it is at most a minute old.
    pub(super) fn detail<T>(
        &self,
        take: impl FnOnce(&'a GpuDetails) -> &'a Reading<T>,
    ) -> Option<&'a T> {
        let details = self
            .details
            .filter(|details| self.is_fresh(details.at_ms))?;
        self.fresh(take(details))
    }

    /// Returns a value of the hardware counters if it is at most a minute old.
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
