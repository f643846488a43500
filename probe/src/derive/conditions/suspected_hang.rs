//! Kernels run without a pause, and nothing moves: a collective waits for a process that never
//! arrives, or a kernel spins forever.
//!
//! A program under a debugger is not reported, because somebody has stopped it. A persistent kernel
//! that waits for requests is not reported, because every request moves something. A GPU may wait
//! while another GPU of its job works, such as one that evaluates the model for all; this takes
//! minutes, not hours.

use super::{
    clock::Moment,
    hysteresis::Observation,
    idle_power::{IdlePower, draw_watts},
    rule::{Rule, View},
};
use crate::model::{ConditionKind, GpuProcess, GpuSample, Process, ProcessKind, Utilization};

mod same_job;

use same_job::is_same_job;

/// The time for which nothing must have moved. A shorter wait can be normal.
const BEGIN_AFTER_MS: u64 = 120_000;

/// The time for which nothing must have moved while another GPU of the same job works.
pub(super) const BEGIN_BESIDE_WORK_AFTER_MS: u64 = 600_000;

/// The minimum utilization. A kernel that never ends results in 100 % in every second.
const BUSY_PERCENT: f64 = 99.5;

/// The maximum memory utilization, which a kernel that polls a flag in memory has.
const STILL_MEMORY_PERCENT: f64 = 1.0;

/// The maximum draw of a board whose kernels wait, as a share of its limit. An H200 draws a quarter
/// of its limit.
const WAITING: f64 = 0.5;

/// The maximum traffic over links. An idle or spinning GPU has up to 1 MB/s on an H200.
const SILENT_BYTES_PER_SECOND: f64 = 4e6;

/// The maximum change of used memory, which the driver causes itself from time to time.
const SAME_BYTES: u64 = 2 << 20;

/// The maximum change of SM activity. A waiting kernel occupies the same multiprocessors, so that
/// the share is constant to the second digit.
const SAME_SM_PERCENT: f64 = 0.2;

/// The maximum change of the draw. With a waiting kernel it changes by a tenth of a watt, and
/// slowly while the chip cools or warms.
const SAME_WATTS: f64 = 3.0;
const SAME_POWER: f64 = 0.04;
const POWER_FOLLOWS_MS: f64 = 20_000.0;

/// The longest gap between readings. After a longer gap it is not known whether anything moved.
const LONGEST_GAP_MS: u64 = 60_000;

/// The maximum number of processes named as differing from the rest of their job.
const MOST_DIFFERING: usize = 4;

#[derive(Default)]
pub(super) struct SuspectedHang {
    idle_power: IdlePower,
    still: Option<Still>,
    /// The time since which nothing has moved, while the condition lasts.
    since: Option<Moment>,
}

/// Readings that have not changed.
#[derive(Debug, Clone, Copy)]
struct Still {
    since: Moment,
    /// The time of the latest comparison.
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
        // Observations with an attached debugger are inconclusive, so that looking into a hang does
        // not end the condition.
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
        // If most of the job's GPUs differ, this GPU is the exception.
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
        // The idle power is kept, because it is a property of the board.
        *self = Self {
            idle_power: std::mem::take(&mut self.idle_power),
            ..Self::default()
        };
    }
}

impl SuspectedHang {
    /// Compares the sample with the previous one. Returns `None` if something has moved, or if this
    /// is not known.
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

/// Returns `true` if this sample does not exclude that kernels only wait, so that the GPU has to be
/// read often. Absent readings exclude nothing.
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

/// Returns `true` if a kernel runs all the time and does not access memory.
fn runs_and_rests(gpu_percent: f64, memory_percent: f64) -> bool {
    gpu_percent >= BUSY_PERCENT && memory_percent <= STILL_MEMORY_PERCENT
}

/// Returns `true` if kernels run all the time, with about the draw of an idle GPU and without
/// traffic. Returns `None` if readings are missing.
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

/// Other GPUs with processes of the same job.
#[derive(Debug, Default)]
struct Siblings {
    /// GPUs on which kernels also run all the time without memory traffic.
    waiting: Vec<u32>,
    differing: Vec<GpuProcess>,
    /// Whether a differing GPU runs kernels.
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
