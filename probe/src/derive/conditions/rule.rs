//! The trait for condition rules, and the readings that rules observe.

use super::{baseline::Baseline, clock::Moment, hysteresis::Observation, text::process_name};
use crate::{
    benchmarks::BelowBaseline,
    model::{Activity, Board, ConditionKind, GpuDetails, GpuSample, Health, Process, Reading},
};

/// The maximum age of a reading that rules use.
const MAX_AGE_MS: u64 = 60_000;

/// A process's identity: its PID and start time.
pub(super) type ProcessKey = (u32, Option<u64>);

pub(super) fn process_key(process: &Process) -> ProcessKey {
    (process.pid, process.started_ms.value().copied())
}

/// The rule for one condition. The tracker is responsible for hysteresis, severity and texts.
pub(super) trait Rule: Send {
    /// Observes one sample. `lasts` is `true` while the condition lasts, so that the end threshold
    /// can differ from the start threshold.
    fn observe(&mut self, view: &View<'_>, lasts: bool) -> Observation<ConditionKind>;

    /// Returns when the condition started, if that was before the first observation.
    fn began_at(&self) -> Option<Moment> {
        None
    }

    /// Forgets earlier samples when the GPU is lost, failed or asleep.
    fn forget(&mut self) {}

    /// Returns the learned baseline of this GPU, if the rule has one.
    fn baseline(&self) -> Option<&Baseline> {
        None
    }

    /// Replaces the learned baseline.
    fn restore(&mut self, _baseline: &Baseline) {}
}

/// A rule without state can be a function.
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
    /// All GPUs of the machine, including the observed GPU.
    pub(super) machine: &'a [GpuSample],
    pub(super) board: &'a Board,
    pub(super) details: Option<&'a GpuDetails>,
    pub(super) below_baseline: Option<&'a BelowBaseline>,
    pub(super) now: Moment,
}

impl<'a> View<'a> {
    /// Returns the other GPUs of the machine that currently respond.
    pub(super) fn other_gpus(&self) -> impl Iterator<Item = &'a GpuSample> {
        let own = self.sample.index;
        let machine = self.machine.iter();
        machine.filter(move |gpu| gpu.index != own && gpu.health == Health::Ok)
    }

    /// Returns the value of a reading if it is at most a minute old.
    pub(super) fn fresh_value<'r, T>(&self, reading: &'r Reading<T>) -> Option<&'r T> {
        match reading {
            Reading::Now(value) => Some(value),
            Reading::Earlier { value, at_ms } if self.is_fresh(*at_ms) => Some(value),
            Reading::Earlier { .. } | Reading::Absent(_) => None,
        }
    }

    /// Returns a value from the details if it is at most a minute old.
    pub(super) fn fresh_detail<T>(
        &self,
        take: impl FnOnce(&'a GpuDetails) -> &'a Reading<T>,
    ) -> Option<&'a T> {
        let details = self
            .details
            .filter(|details| self.is_fresh(details.at_ms))?;
        self.fresh_value(take(details))
    }

    /// Returns a value from the hardware counters if it is at most a minute old.
    pub(super) fn fresh_activity(
        &self,
        take: impl FnOnce(&Activity) -> &Reading<f64>,
    ) -> Option<f64> {
        self.fresh_value(take(self.fresh_value(&self.sample.activity)?))
            .copied()
    }

    /// Returns the display name of one of this GPU's processes.
    pub(super) fn process_name(&self, pid: u32) -> String {
        let mut processes = self.sample.processes.value().into_iter().flatten();
        let process = processes.find(|process| process.pid == pid);
        process.map_or_else(|| format!("process {pid}"), process_name)
    }

    fn is_fresh(&self, at_ms: u64) -> bool {
        self.now.wall_ms.abs_diff(at_ms) <= MAX_AGE_MS
    }
}
