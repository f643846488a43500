//! The step between two consecutive samples of a GPU, and the division of its energy among owners.

use std::collections::BTreeMap;

use super::{Joules, Ledger, OwnerKey};
use crate::model::{GpuSample, Health, Process, Reading};

/// There is a gap between two samples if they are further apart than this number of intervals plus
/// `MAX_GAP_MS`.
const MAX_GAP_INTERVALS: u64 = 3;
const MAX_GAP_MS: u64 = 2_000;

/// The maximum age of the processes' shares of GPU time, for a GPU with only one owner. Older
/// shares are not used: the GPU's utilization replaces them.
const MAX_SHARES_AGE_MS: u64 = 3_000;

/// A time span in milliseconds since 1970. The end is infinite while a measurement continues.
#[derive(Debug, Clone, Copy)]
pub(super) struct Span {
    pub(super) from_ms: f64,
    pub(super) to_ms: f64,
}

impl Span {
    pub(super) fn new(from_ms: u64, to_ms: u64) -> Self {
        Self {
            from_ms: from_ms as f64,
            to_ms: to_ms as f64,
        }
    }

    pub(super) fn seconds(self) -> f64 {
        (self.to_ms - self.from_ms) / 1000.0
    }

    /// Returns the intersection of two spans, or `None` if they do not overlap.
    pub(super) fn intersect(self, other: Self) -> Option<Self> {
        let both = Self {
            from_ms: self.from_ms.max(other.from_ms),
            to_ms: self.to_ms.min(other.to_ms),
        };
        (both.from_ms < both.to_ms).then_some(both)
    }
}

/// The data of the previous sample.
#[derive(Debug)]
pub(super) struct LastSample {
    pub(super) at_ms: u64,
    pub(super) interval_ms: u32,
    pub(super) watts: Option<f64>,
    gpu_percent: Option<f64>,
    pub(super) holders: BTreeMap<u32, Option<f64>>,
    /// The time at which the processes' shares of GPU time were read.
    shares_at_ms: u64,
    omitted: bool,
}

/// The time between two consecutive samples of a GPU.
#[derive(Debug)]
pub(super) struct Step {
    pub(super) span: Span,
    /// The step's energy, which is the integral of the power, or `None` if the power is unknown.
    pub(super) joules: Option<f64>,
    /// Whether the processes' shares of GPU time are older than the step.
    pub(super) shares_are_old: bool,
    /// Share of time in which a kernel ran.
    pub(super) gpu_share: Option<f64>,
    /// The power at the end of the step, if programs used the GPU but no kernel ran.
    pub(super) idle_watts: Option<f64>,
    /// The use by each process, by PID.
    pub(super) holders: BTreeMap<u32, ProcessUse>,
    /// Whether some processes were omitted from the sample's list.
    pub(super) omitted: bool,
}

/// The use of a GPU in one step by a process, or by all processes of an owner.
#[derive(Debug, Clone, Copy)]
pub(super) struct ProcessUse {
    /// Share of time in which the process's kernels ran, 0 to 1.
    pub(super) share: Option<f64>,
    pub(super) before: bool,
    pub(super) after: bool,
}

impl LastSample {
    /// Returns the data of a sample, or `None` if the GPU's processes are unknown.
    pub(super) fn from_sample(gpu: &GpuSample, interval_ms: u32) -> Option<Self> {
        let (Health::Ok, Reading::Now(processes)) = (&gpu.health, &gpu.processes) else {
            return None;
        };
        let mut holders: BTreeMap<u32, Option<f64>> = BTreeMap::new();
        let mut shares_at_ms = 0;
        // The MPS server is skipped, because it only works on behalf of its clients, which are also
        // listed.
        let is_server = |process: &&Process| {
            process
                .name
                .value()
                .is_some_and(|name| name.starts_with("nvidia-cuda-mps"))
        };
        for process in processes.iter().filter(|process| !is_server(process)) {
            // A process that uses several MIG instances has several entries; the largest share of
            // GPU time is used.
            let share = process.sm_percent.value().map(|percent| percent / 100.0);
            shares_at_ms = process.sm_percent.read_at_ms(gpu.at_ms).max(shares_at_ms);
            let known = holders.entry(process.pid).or_insert(share);
            *known = known.zip(share).map(|(one, other)| one.max(other));
        }
        let gpu_percent = gpu.utilization.gpu_percent.value().copied();
        let omitted = gpu.processes_omitted > 0;
        Some(Self {
            at_ms: gpu.at_ms,
            interval_ms,
            watts: gpu.power.mean_watts(),
            gpu_percent,
            holders,
            shares_at_ms,
            omitted,
        })
    }

    /// Returns the maximum time between two samples that does not count as a gap.
    pub(super) fn max_gap_ms(&self, last: &Self) -> u64 {
        MAX_GAP_INTERVALS * u64::from(self.interval_ms.max(last.interval_ms)) + MAX_GAP_MS
    }
}

impl Step {
    /// Returns the part of the step between two samples that is within `span`.
    pub(super) fn new(last: &LastSample, now: &LastSample, span: Span) -> Self {
        let pids = last.holders.keys().chain(now.holders.keys());
        let holders = pids.map(|pid| {
            let (before, after) = (last.holders.get(pid), now.holders.get(pid));
            let hold = ProcessUse {
                // The later sample is preferred, because its share of GPU time describes the time
                // before it, which is this step.
                share: after.or(before).copied().flatten(),
                before: before.is_some(),
                after: after.is_some(),
            };
            (*pid, hold)
        });
        let watts = last
            .watts
            .zip(now.watts)
            .map(|(one, other)| f64::midpoint(one, other));
        let is_idle = last.gpu_percent == Some(0.0) && now.gpu_percent == Some(0.0);
        Self {
            span,
            joules: watts.map(|watts| watts * span.seconds()),
            shares_are_old: now.shares_at_ms.saturating_add(MAX_SHARES_AGE_MS) < now.at_ms,
            gpu_share: now.gpu_percent.map(|percent| percent / 100.0),
            idle_watts: now.watts.filter(|_| is_idle && !now.holders.is_empty()),
            holders: holders.collect(),
            omitted: last.omitted || now.omitted,
        }
    }

    /// Shortens the step so that it ends at `to_ms`.
    pub(super) fn truncate(&mut self, to_ms: f64) {
        let seconds = self.span.seconds();
        self.span.to_ms = to_ms;
        let share = self.span.seconds() / seconds;
        self.joules = self.joules.map(|joules| joules * share);
    }
}

impl ProcessUse {
    /// Returns the share of the step in which the process was present: half if it started or ended
    /// during the step.
    fn presence(&self) -> f64 {
        if self.before && self.after { 1.0 } else { 0.5 }
    }

    fn join(&mut self, other: &Self) {
        let shares = self.share.zip(other.share);
        self.share = shares.map(|(one, other)| (one + other).min(1.0));
        self.before |= other.before;
        self.after |= other.after;
    }
}

/// Divides the energy and time of a step among the owners of its processes.
pub(super) fn divide_step(
    step: &Step,
    joules: Option<f64>,
    idle_watts: Option<f64>,
    owner_of: impl Fn(u32) -> OwnerKey,
) -> Ledger {
    let mut used = Ledger::default();
    let seconds = step.span.seconds();
    let listed = step.holders.iter();
    let listed = listed.map(|(pid, hold)| (owner_of(*pid), *hold));
    // Omitted processes also use the GPU, but their owner is unknown.
    let unlisted = step.omitted.then(|| {
        let hold = ProcessUse {
            share: None,
            before: true,
            after: true,
        };
        (OwnerKey::default(), hold)
    });
    let mut parts: BTreeMap<OwnerKey, ProcessUse> = BTreeMap::new();
    for (owner, hold) in listed.chain(unlisted) {
        parts
            .entry(owner)
            .and_modify(|part| part.join(&hold))
            .or_insert(hold);
    }
    let is_shared = parts.len() > 1;
    for (key, part) in &parts {
        let usage = used.get_or_insert(key);
        usage.gpu_seconds = seconds * part.presence();
        let of_gpu = step.gpu_share.filter(|_| !is_shared);
        let share = if step.shares_are_old {
            of_gpu.or(part.share)
        } else {
            part.share.or(of_gpu)
        };
        usage.active_seconds = seconds * share.unwrap_or(0.0);
        if !is_shared {
            usage.exclusive_seconds = usage.gpu_seconds;
        }
        usage.joules = joules.map(|joules| {
            let idle_joules = idle_watts.map(|watts| (watts * seconds).min(joules));
            owner_energy(joules, idle_joules, key, &parts)
        });
    }
    // If the only owner started or ended during the step, it counts as present for half of the
    // step. In the other half, the GPU had no owner.
    let presence = if is_shared {
        1.0
    } else {
        parts.values().map(ProcessUse::presence).sum()
    };
    used.unheld.gpu_seconds = seconds * (1.0 - presence);
    used.unheld.joules = joules.unwrap_or(0.0) * (1.0 - presence);
    used
}

/// Returns one owner's part of the energy. The sum of all owners' estimates is the total energy,
/// minus the energy that belongs to no owner.
fn owner_energy(
    joules: f64,
    idle_joules: Option<f64>,
    key: &OwnerKey,
    parts: &BTreeMap<OwnerKey, ProcessUse>,
) -> Joules {
    let own = &parts[key];
    let is_whole = own.before && own.after;
    if parts.len() == 1 {
        let least = if is_whole { joules } else { 0.0 };
        return Joules {
            least,
            most: joules,
            estimate: joules * own.presence(),
        };
    }
    let presence: f64 = parts.values().map(ProcessUse::presence).sum();
    let evenly = own.presence() / presence;
    let shares: Option<f64> = parts.values().map(|part| part.share).sum();
    let Some((all, share)) = shares.filter(|all| *all > 0.0).zip(own.share) else {
        return Joules {
            least: 0.0,
            most: joules,
            estimate: joules * evenly,
        };
    };
    let beyond_idle = joules - idle_joules.unwrap_or(0.0);
    let is_alone_active = share >= all;
    Joules {
        least: if is_whole && is_alone_active && idle_joules.is_some() {
            beyond_idle
        } else {
            0.0
        },
        most: joules,
        estimate: idle_joules.unwrap_or(0.0) * evenly + beyond_idle * share / all,
    }
}
