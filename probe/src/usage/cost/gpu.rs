//! The use of one GPU by its owners, computed from consecutive samples.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    ops::Mul,
};

use super::{memory::Memory, seen::Seen, timeline::Timeline};
use crate::{
    model::{Absence, GpuCost, GpuSample, Process, Trace, TraceMetric},
    usage::{
        Joules,
        accounts::OwnerKey,
        add_known,
        steps::{Last, Span, Step, share_out},
    },
};

/// The maximum delay of the driver's records, which normally arrive a second or two late.
/// Afterwards, samples are used instead.
const RECORDS_COME_WITHIN_MS: f64 = 4_000.0;

/// The use of one GPU by all of its owners.
#[derive(Debug, Default)]
pub(super) struct GpuSteps {
    /// The previous sample.
    last: Option<Last>,
    /// The time of the first sample.
    first_ms: f64,
    /// Steps that wait for the driver's records.
    pending: VecDeque<Pending>,
    watts: Timeline,
    busy_percent: Timeline,
    /// The latest power draw while a program used the GPU and no kernel ran.
    idle_watts: Option<f64>,
    /// The measured owners in the last sample, by process.
    owners: BTreeMap<u32, OwnerKey>,
}

/// A step whose energy and GPU time are not known yet.
#[derive(Debug)]
struct Pending {
    step: Step,
    /// The measured owners, by process.
    owners: BTreeMap<u32, OwnerKey>,
}

/// The use of a GPU by one owner in a part of the time.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Used {
    pub(super) held_s: f64,
    pub(super) gpu_s: Option<f64>,
    pub(super) joules: Option<Joules>,
    pub(super) shared: bool,
    /// The memory at the end, if memory is measured. The peak follows.
    pub(super) bytes: Option<u64>,
    pub(super) peak_bytes: Option<u64>,
}

impl Used {
    /// Adds the use in a later part.
    pub(super) fn add(&mut self, more: &Self) {
        self.held_s += more.held_s;
        add_known(&mut self.gpu_s, more.gpu_s);
        add_known(&mut self.joules, more.joules);
        self.shared |= more.shared;
        self.bytes = more.bytes;
        self.peak_bytes = self.peak_bytes.max(more.peak_bytes);
    }
}

impl Mul<f64> for Joules {
    type Output = Self;

    fn mul(self, factor: f64) -> Self {
        Self {
            least: self.least * factor,
            most: self.most * factor,
            estimate: self.estimate * factor,
        }
    }
}

/// The time that a sample adds.
#[derive(Debug, Default)]
pub(super) struct Added {
    /// The measured part in which a measured owner used the GPU.
    pub(super) held: Option<Span>,
    /// The part without readings, in milliseconds.
    pub(super) gap_ms: f64,
}

impl GpuSteps {
    /// Applies the next sample. `owners` are the owners of its measured processes. Returns `None`
    /// if the sample does not list the GPU's processes, so that nothing is known until the next
    /// sample that does.
    pub(super) fn push(
        &mut self,
        gpu: &GpuSample,
        interval_ms: u32,
        owners: BTreeMap<u32, OwnerKey>,
        span: Span,
    ) -> Option<Added> {
        let mut now = Last::new(gpu, interval_ms)
            .filter(|now| self.last.as_ref().is_none_or(|last| last.at_ms < now.at_ms))?;
        if self.first_ms == 0.0 {
            self.first_ms = gpu.at_ms as f64;
        }
        // The newest measurement is preferred, because an average over a second describes the time
        // before.
        now.watts = gpu.power.instant_watts.value().copied().or(now.watts);
        let last = self.last.take();
        let added = last.map_or_else(Added::default, |last| {
            self.add_step(&last, &now, &owners, span)
        });
        self.owners = owners;
        self.last = Some(now);
        Some(added)
    }

    /// Returns the measured owners in the last sample.
    pub(super) fn owners(&self) -> impl Iterator<Item = &OwnerKey> {
        self.owners.values()
    }

    pub(super) fn add_trace(&mut self, trace: &Trace) {
        match trace.metric {
            TraceMetric::PowerWatts => self.watts.add(trace),
            TraceMetric::GpuPercent => self.busy_percent.add(trace),
            TraceMetric::MemoryPercent => {}
        }
    }

    fn add_step(
        &mut self,
        last: &Last,
        now: &Last,
        owners: &BTreeMap<u32, OwnerKey>,
        span: Span,
    ) -> Added {
        let Some(span) = Span::new(last.at_ms, now.at_ms).intersect(span) else {
            return Added::default();
        };
        if now.at_ms - last.at_ms > now.longest_gap_ms(last) {
            return Added {
                held: None,
                gap_ms: span.to_ms - span.from_ms,
            };
        }
        let step = Step::new(last, now, span);
        self.idle_watts = step.idle_watts.or(self.idle_watts);
        let mut all = self.owners.clone();
        all.extend(owners.iter().map(|(pid, owner)| (*pid, owner.clone())));
        if all.is_empty() {
            return Added::default();
        }
        self.pending.push_back(Pending { step, owners: all });
        Added {
            held: Some(span),
            gap_ms: 0.0,
        }
    }

    /// Adds the time after the last sample, if the measurement ended before the next one. The GPU's
    /// state is assumed to be unchanged. Returns the part without readings, in milliseconds.
    fn extend(&mut self, to_ms: f64, from_ms: f64) -> f64 {
        let Some(last) = self.last.as_ref().filter(|_| !self.owners.is_empty()) else {
            return 0.0;
        };
        let from_ms = from_ms.max(last.at_ms as f64);
        if to_ms <= from_ms {
            return 0.0;
        }
        if to_ms - last.at_ms as f64 > last.longest_gap_ms(last) as f64 {
            return to_ms - from_ms;
        }
        self.pending.push_back(Pending {
            step: Step::new(last, last, Span { from_ms, to_ms }),
            owners: self.owners.clone(),
        });
        0.0
    }

    /// Removes everything after a time, because a later sample may already have been applied.
    fn end(&mut self, to_ms: f64) {
        self.pending
            .retain(|pending| pending.step.span.from_ms < to_ms);
        if let Some(Pending { step, .. }) = self.pending.back_mut()
            && step.span.to_ms > to_ms
        {
            step.truncate(to_ms);
        }
    }

    /// Passes the use in all complete steps, and in those that will not become complete, to `take`.
    pub(super) fn settle(&mut self, all: bool, mut take: impl FnMut(&OwnerKey, Span, Used)) {
        let newest_ms = self.last.as_ref().map_or(0.0, |last| last.at_ms as f64);
        while let Some(pending) = self.pending.front() {
            let to_ms = pending.step.span.to_ms;
            let is_due = all || newest_ms - to_ms > RECORDS_COME_WITHIN_MS;
            // A driver that has recorded nothing by then does not record.
            let is_young = newest_ms - self.first_ms < RECORDS_COME_WITHIN_MS;
            let is_coming = |records: &Timeline| match records.newest_ms() {
                Some(recorded_ms) => recorded_ms < to_ms,
                None => is_young,
            };
            if !is_due && (is_coming(&self.watts) || is_coming(&self.busy_percent)) {
                return;
            }
            self.divide(pending, &mut take);
            self.pending.pop_front();
        }
    }

    /// Passes the use in all steps that are not settled, as far as it is known, to `take`.
    pub(super) fn each_pending(&self, mut take: impl FnMut(&OwnerKey, Span, Used)) {
        for pending in &self.pending {
            self.divide(pending, &mut take);
        }
    }

    /// Divides the use in a step among its owners.
    fn divide(&self, pending: &Pending, take: &mut impl FnMut(&OwnerKey, Span, Used)) {
        let Pending { step, owners } = pending;
        let (span, seconds) = (step.span, step.span.seconds());
        let joules = self.watts.along_lines(span).or(step.joules);
        // The time in which kernels of any owner ran.
        let busy_s = self
            .busy_percent
            .in_steps(span)
            .map(|percent_seconds| percent_seconds / 100.0)
            .or(step.gpu_share.map(|share| share * seconds));
        let mut used = share_out(step, joules, self.idle_watts, |pid| {
            owners.get(&pid).cloned().unwrap_or_default()
        });
        for owner in owners.values().collect::<BTreeSet<_>>() {
            let usage = used.get_or_insert(owner);
            let is_shared = usage.exclusive_seconds < usage.gpu_seconds;
            let of_processes = step
                .holders
                .iter()
                .filter(|(pid, _)| owners.get(pid) == Some(owner))
                .filter_map(|(_, hold)| hold.share);
            let by_shares = of_processes
                .reduce(|one, other| (one + other).min(1.0))
                .map(|share| share * seconds);
            let used = Used {
                held_s: usage.gpu_seconds,
                gpu_s: busy_s.filter(|_| !is_shared).or(by_shares),
                joules: usage.joules,
                shared: is_shared,
                ..Used::default()
            };
            take(owner, span, used);
        }
    }

    /// Returns the share of a part's use that falls into a span. The driver's records determine the
    /// share while they are kept; older use is divided evenly.
    pub(super) fn cut_to_span(&self, used: &Used, part: Span, span: Span) -> Option<Used> {
        let clipped = part.intersect(span)?;
        let evenly = clipped.seconds() / part.seconds();
        if evenly >= 1.0 {
            return Some(*used);
        }
        let share = |integral: fn(&Timeline, Span) -> Option<f64>, records: &Timeline| {
            let whole = integral(records, part).filter(|whole| *whole > 0.0);
            integral(records, clipped)
                .zip(whole)
                .map_or(evenly, |(clipped, whole)| clipped / whole)
        };
        let energy = share(Timeline::along_lines, &self.watts);
        let busy = share(Timeline::in_steps, &self.busy_percent);
        Some(Used {
            held_s: used.held_s * evenly,
            gpu_s: used.gpu_s.map(|gpu_s| gpu_s * busy),
            joules: used.joules.map(|joules| joules * energy),
            ..*used
        })
    }

    /// Returns `true` if later records cannot change the use until this time.
    pub(super) fn is_final(&self, to_ms: f64) -> bool {
        let is_past = self
            .last
            .as_ref()
            .is_some_and(|last| last.at_ms as f64 >= to_ms);
        (is_past || self.owners.is_empty())
            && self
                .pending
                .front()
                .is_none_or(|pending| pending.step.span.from_ms >= to_ms)
    }
}

/// The meter of a measurement on one GPU.
#[derive(Debug, Default)]
pub(super) struct GpuCostMeter {
    steps: GpuSteps,
    /// The reason why the GPU's processes are not known, if they never were.
    untold: Option<Absence>,
    used: Used,
    memory: Memory,
    seen: Seen,
    /// The time without readings, in milliseconds.
    pub(super) gap_ms: f64,
}

impl GpuCostMeter {
    /// Applies the next sample of the GPU. `own` are its measured processes.
    pub(super) fn push(&mut self, gpu: &GpuSample, interval_ms: u32, own: &[&Process], span: Span) {
        let at_ms = gpu.at_ms as f64;
        self.untold = gpu
            .processes
            .absence()
            .filter(|_| self.steps.last.is_none() && at_ms >= span.from_ms)
            .cloned();
        let owner = OwnerKey {
            user: Some(String::new()),
            job: None,
        };
        let owners = own.iter().map(|process| (process.pid, owner.clone()));
        let Some(added) = self.steps.push(gpu, interval_ms, owners.collect(), span) else {
            return;
        };
        self.memory.push(at_ms, own, span);
        self.gap_ms += added.gap_ms;
        if let Some(span) = added.held {
            self.seen.push(gpu, span);
        }
        self.settle(false);
    }

    pub(super) fn add_trace(&mut self, trace: &Trace) {
        self.steps.add_trace(trace);
        self.settle(false);
    }

    /// Adds the time after the last sample, if the measurement ended before the next one.
    pub(super) fn extend(&mut self, to_ms: f64, from_ms: f64) {
        self.gap_ms += self.steps.extend(to_ms, from_ms);
    }

    /// Ends the measurement at a time, which may be before the newest sample.
    pub(super) fn end(&mut self, to_ms: f64) {
        self.steps.end(to_ms);
        self.memory.end(to_ms);
    }

    /// Adds the steps that are complete, or will not become complete.
    pub(super) fn settle(&mut self, all: bool) {
        self.steps.settle(all, |_, _, used| self.used.add(&used));
    }

    /// Returns the reason why the GPU's processes are not known. GPUs that sleep or are lost have
    /// no processes, and readings that are still expected are no reason.
    pub(super) fn untold(&self) -> Option<&Absence> {
        use Absence::{Asleep, GpuLost, NoAnswer, NotReadYet, WarmingUp};
        self.untold.as_ref().filter(|absence| {
            !matches!(
                absence,
                Asleep | GpuLost | NoAnswer | NotReadYet | WarmingUp
            )
        })
    }

    /// Returns `true` if the use until this time is completely known.
    pub(super) fn is_final(&self, to_ms: f64) -> bool {
        self.steps.is_final(to_ms)
    }

    /// Returns the cost, or `None` if the measurement did not use the GPU. Energy and GPU time
    /// include only what is known so far.
    pub(super) fn cost(&self, index: u32) -> Option<GpuCost> {
        let cost = gpu_cost(index, &self.used, &self.memory, self.seen.cost());
        let is_held =
            cost.held_s > 0.0 || cost.peak_memory_bytes.is_some() || !self.steps.pending.is_empty();
        is_held.then_some(cost)
    }
}

/// Combines the parts of a GPU's cost.
pub(super) fn gpu_cost(index: u32, used: &Used, memory: &Memory, seen: GpuCost) -> GpuCost {
    GpuCost {
        index,
        held_s: used.held_s,
        gpu_s: used.gpu_s,
        energy_joules: used.joules,
        shared: used.shared,
        peak_memory_bytes: memory.peak_bytes(),
        memory_change_bytes: memory.change_bytes(),
        ..seen
    }
}
