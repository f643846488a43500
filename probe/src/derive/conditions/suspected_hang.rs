//! Kernels run without a pause, and nothing moves: a collective that waits for a process which
//! never comes, or a kernel that spins for ever.
//!
//! A program under a debugger stands still because somebody looks at it. A persistent kernel that
//! waits for requests moves something whenever one comes. A GPU whose sibling works may wait for
//! that, as for one that evaluates the model for all of them, which takes minutes and no hours.

use super::{
    clock::Moment,
    hysteresis::Observation,
    idle_power::{IdlePower, draw_watts},
    rule::{Rule, View},
};
use crate::model::{ConditionKind, GpuProcess, GpuSample, Process, ProcessKind, Utilization};

mod same_job;

use same_job::is_same_job;

/// What has run for so long while nothing moved hardly waits for a moment only.
const BEGIN_AFTER_MS: u64 = 120_000;

/// The same where another GPU of the same job works meanwhile.
pub(super) const BEGIN_BESIDE_WORK_AFTER_MS: u64 = 600_000;

/// A kernel that never ends makes it 100 in every second.
const BUSY_PERCENT: f64 = 99.5;

/// Of a kernel that polls a flag in memory.
const STILL_MEMORY_PERCENT: f64 = 1.0;

/// No board whose kernels wait draws more than this share of its limit: it is a quarter of an
/// H200's.
const WAITING: f64 = 0.5;

/// A GPU that is idle or spins has up to 1 MB/s on an H200.
const SILENT_BYTES_PER_SECOND: f64 = 4e6;

/// What the driver needs for itself now and then.
const SAME_BYTES: u64 = 2 << 20;

/// A kernel that waits holds its multiprocessors: the share is the same to the second digit.
const SAME_SM_PERCENT: f64 = 0.2;

/// The draw of a kernel that waits moves by a tenth of a watt, and a chip that cools or warms
/// changes it slowly.
const SAME_WATTS: f64 = 3.0;
const SAME_POWER: f64 = 0.04;
const POWER_FOLLOWS_MS: f64 = 20_000.0;

/// Readings that were absent for longer do not tell whether anything moved meanwhile.
const LONGEST_GAP_MS: u64 = 60_000;

/// Processes of a job that are named where most of it waits.
const MOST_DIFFERING: usize = 4;

#[derive(Default)]
pub(super) struct SuspectedHang {
    idle_power: IdlePower,
    still: Option<Still>,
    /// While the condition lasts, since when nothing has moved.
    since: Option<Moment>,
}

/// What does not move.
#[derive(Debug, Clone, Copy)]
struct Still {
    since: Moment,
    /// When it was compared last.
    at: Moment,
    used_bytes: Option<u64>,
    sm_percent: Option<f64>,
    watts: f64,
}

impl Rule for SuspectedHang {
    fn observe(&mut self, view: &View<'_>, lasts: bool) -> Observation<ConditionKind> {
        self.idle_power.learn(view);
        if !lasts {
            self.since = None;
        }
        let Some(watts) = draw_watts(view, view.sample) else {
            return Observation::Unknown;
        };
        match may_hang(view, watts, self.idle_power.waiting_watts(view)) {
            None => return Observation::Unknown,
            Some(false) => {
                self.still = None;
                return Observation::Inactive;
            }
            Some(true) => {}
        }
        let Some(still) = self.compare(view, watts) else {
            return Observation::Inactive;
        };
        let processes = compute_processes(view.sample);
        // Whoever looks into a hang with a debugger does not end it.
        if processes
            .iter()
            .any(|process| process.traced.value() == Some(&true))
        {
            self.still = None;
            return Observation::Inconclusive;
        }
        let siblings = Siblings::of(view, &processes);
        let begins_after_ms = if siblings.work {
            BEGIN_BESIDE_WORK_AFTER_MS
        } else {
            BEGIN_AFTER_MS
        };
        if self.since.is_none() && view.now.since(still.since) < begins_after_ms {
            return Observation::Inconclusive;
        }
        self.since.get_or_insert(still.since);
        let Siblings {
            waiting,
            mut differing,
            ..
        } = siblings;
        // If most differ, this GPU is the one that differs.
        if differing.len() > waiting.len().saturating_add(1).min(MOST_DIFFERING) {
            differing.clear();
        }
        Observation::Active(ConditionKind::SuspectedHang {
            power_watts: (watts * 10.0).round() / 10.0,
            pids: processes.iter().map(|process| process.pid).collect(),
            waiting,
            differing,
        })
    }

    fn began_at(&self) -> Option<Moment> {
        self.since
    }

    fn forget(&mut self) {
        // The draw of an idle board stays the same.
        *self = Self {
            idle_power: std::mem::take(&mut self.idle_power),
            ..Self::default()
        };
    }
}

impl SuspectedHang {
    /// Compares with the sample before; `None` where something has moved, or nothing tells whether
    /// it has.
    fn compare(&mut self, view: &View<'_>, watts: f64) -> Option<Still> {
        let used_bytes = view.fresh(&view.sample.memory.used_bytes).copied();
        let sm_percent = view.activity(|activity| &activity.sm_percent);
        let new = Still {
            since: view.now,
            at: view.now,
            used_bytes,
            sm_percent,
            watts,
        };
        let moved = self.still.is_some_and(|still| still.moves(&new));
        let still = self
            .still
            .filter(|_| !moved)
            .map_or(new, |still| still.followed_by(&new));
        self.still = Some(still);
        (!moved).then_some(still)
    }
}

impl Still {
    fn moves(&self, new: &Self) -> bool {
        let memory = self
            .used_bytes
            .zip(new.used_bytes)
            .is_some_and(|(was, is)| was.abs_diff(is) > SAME_BYTES);
        let sm = self
            .sm_percent
            .zip(new.sm_percent)
            .is_some_and(|(was, is)| (was - is).abs() > SAME_SM_PERCENT);
        let power = (self.watts - new.watts).abs() > SAME_WATTS.max(self.watts * SAME_POWER);
        memory || sm || power || new.at.since(self.at) > LONGEST_GAP_MS
    }

    fn followed_by(self, new: &Self) -> Self {
        let weight = (new.at.since(self.at) as f64 / POWER_FOLLOWS_MS).min(1.0);
        Self {
            at: new.at,
            used_bytes: self.used_bytes.or(new.used_bytes),
            sm_percent: self.sm_percent.or(new.sm_percent),
            watts: self.watts + (new.watts - self.watts) * weight,
            ..self
        }
    }
}

/// Whether it cannot be ruled out by this sample alone that kernels only wait: whoever reads GPUs
/// has to look closely. What is absent rules out nothing.
pub fn could_hang(gpu: &GpuSample) -> bool {
    let Utilization {
        gpu_percent,
        memory_percent,
        ..
    } = &gpu.utilization;
    let runs = gpu_percent
        .value()
        .zip(memory_percent.value())
        .is_none_or(|(gpu, memory)| runs_and_rests(*gpu, *memory));
    let watts = gpu
        .power
        .average_watts
        .value()
        .or(gpu.power.draw_watts.value());
    let draws_little = watts
        .zip(gpu.power.limit_watts.value())
        .is_none_or(|(watts, limit)| *watts <= limit * WAITING);
    runs && draws_little
}

/// Whether a kernel runs all the time and does not touch the memory.
fn runs_and_rests(gpu_percent: f64, memory_percent: f64) -> bool {
    gpu_percent >= BUSY_PERCENT && memory_percent <= STILL_MEMORY_PERCENT
}

/// Whether kernels run all the time, near the draw of an idle GPU and without traffic; `None` where
/// nothing tells.
fn may_hang(view: &View<'_>, watts: f64, waiting_watts: Option<f64>) -> Option<bool> {
    let Utilization {
        gpu_percent,
        memory_percent,
        ..
    } = &view.sample.utilization;
    let (gpu, memory) = view.fresh(gpu_percent).zip(view.fresh(memory_percent))?;
    let engines_rest = view
        .sample
        .utilization
        .engines()
        .into_iter()
        .all(|share| view.fresh(share).is_none_or(|share| *share <= 0.0));
    let (pcie, nvlink) = (&view.sample.pcie, &view.sample.nvlink);
    let rates = [
        &pcie.tx_bytes_per_second,
        &pcie.rx_bytes_per_second,
        &nvlink.tx_bytes_per_second,
        &nvlink.rx_bytes_per_second,
    ];
    let is_silent = rates.into_iter().all(|rate| {
        view.fresh(rate)
            .is_none_or(|rate| *rate <= SILENT_BYTES_PER_SECOND)
    });
    Some(runs_and_rests(*gpu, *memory) && watts <= waiting_watts? && engines_rest && is_silent)
}

fn compute_processes(gpu: &GpuSample) -> Vec<&Process> {
    let all = gpu.processes.value().into_iter().flatten();
    all.filter(|process| process.kind != ProcessKind::Graphics)
        .collect()
}

/// The other GPUs on which the same job has processes.
#[derive(Debug, Default)]
struct Siblings {
    /// Where kernels run all the time without memory traffic, too.
    waiting: Vec<u32>,
    differing: Vec<GpuProcess>,
    /// Whether one that differs works.
    work: bool,
}

impl Siblings {
    fn of(view: &View<'_>, processes: &[&Process]) -> Self {
        let mut siblings = Self::default();
        for gpu in view.others() {
            let theirs = compute_processes(gpu);
            let is_of_job =
                |process: &&&Process| processes.iter().any(|own| is_same_job(own, process));
            let Some(process) = theirs.iter().find(is_of_job) else {
                continue;
            };
            let Utilization {
                gpu_percent,
                memory_percent,
                ..
            } = &gpu.utilization;
            let (Some(gpu_percent), Some(memory_percent)) =
                (view.fresh(gpu_percent), view.fresh(memory_percent))
            else {
                continue;
            };
            if runs_and_rests(*gpu_percent, *memory_percent) {
                siblings.waiting.push(gpu.index);
            } else {
                siblings.work |= *gpu_percent > 0.0;
                siblings.differing.push(GpuProcess {
                    gpu: gpu.index,
                    pid: process.pid,
                });
            }
        }
        siblings
    }
}

#[cfg(test)]
mod tests;
